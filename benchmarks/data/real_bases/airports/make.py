"""Airports with an IATA code from airportsdata (+ country names from pycountry). Run: venv/bin/python airports/make.py"""
import os, sys, re, unicodedata
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from common import Base
import airportsdata, pycountry
b = Base(HERE)
def slug(s): return re.sub(r'[^a-z0-9]+', '-', unicodedata.normalize('NFKD', s).encode('ascii', 'ignore').decode().lower()).strip('-') or 'x'
ap = airportsdata.load('IATA')
for a in ap.values():
    c = 'country:' + a['country']
    if c not in b.nodes:
        p = pycountry.countries.get(alpha_2=a['country'])
        names = [getattr(p, 'common_name', None), p.name, getattr(p, 'official_name', None), p.alpha_3] if p else ['Kosovo']
        names = [n for n in dict.fromkeys(names) if n]
        b.node(c, names[0], 'Country', aliases=names[1:] + [a['country']] * bool(p), country=a['country'])
    z = 'tz:' + a['tz']
    if z not in b.nodes: b.node(z, a['tz'], 'Timezone')
    s = None
    if a['subd']:
        s = 'subd:%s-%s' % (a['country'], slug(a['subd']))
        if s not in b.nodes:
            b.node(s, a['subd'], 'Subdivision'); b.edge(s, 'country', c)
    ct = None
    if a['city']:
        ct = 'city:%s-%s-%s' % (a['country'], slug(a['subd'] or ''), slug(a['city']))
        if ct not in b.nodes:
            b.node(ct, a['city'], 'City'); b.edge(ct, 'country', c)
            if s: b.edge(ct, 'subd', s)
    me = 'airport:' + a['iata']
    b.node(me, a['name'], 'Airport', aliases=[a['iata']] + ([a['icao']] if re.fullmatch('[A-Z]{4}', a['icao']) else []), iata=a['iata'], icao=a['icao'], lid=a['lid'],
           elevation=a['elevation'], lat=a['lat'], lon=a['lon'])
    b.edge(me, 'country', c); b.edge(me, 'tz', z)
    if s: b.edge(me, 'subd', s)
    if ct: b.edge(me, 'city', ct)
for k, m in airportsdata.load_iata_macs().items():
    b.node('mac:' + k, m['name'], 'Multi-airport city', aliases=[k], iata=k)
    b.edge('mac:' + k, 'country', 'country:' + m['country'])
    for x in m['airports']: b.edge('airport:' + x, 'multi_airport_city', 'mac:' + k)
b.write()
with open(os.path.join(HERE, 'schema.toml'), 'w') as f:   # wording from airportsdata's README
    f.write('''[types."Airport"]
description = "Operational airport, landing strip or seaplane base with an IATA code. iata: IATA 3-letter Location Code; icao: ICAO 4-letter Location Indicator or (if none) an internal pseudo-ICAO identifier; lid: U.S. FAA Location Identifier; elevation: MSL elevation of the highest point of the landing area, in feet; lat, lon: latitude and longitude (decimal) of the airport reference point"

[types."Subdivision"]
description = "Subdivision of a country (e.g. state, province, region)"

[types."Multi-airport city"]
description = "IATA Multi Airport City (MAC): a city code that stands for several airports"

[relations."tz"]
description = "Timezone expressed as a tz database name"

[relations."subd"]
description = "Subdivision (e.g. state, province, region, etc.)"
''')
