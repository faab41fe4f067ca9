"""Chemical elements from mendeleev's elements.db. Run: venv/bin/python elements/make.py"""
import os, sys, re, sqlite3
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from common import Base
import importlib.util
db = os.path.join(os.path.dirname(importlib.util.find_spec('mendeleev').origin), 'elements.db')
con = sqlite3.connect(db); con.row_factory = sqlite3.Row
q = lambda s: [dict(r) for r in con.execute(s)]
b = Base(HERE)
slug = lambda s: re.sub(r'[^a-z0-9]+', '-', s.lower().replace('é','e').replace('è','e').replace('ö','o').replace('ü','u').replace('ç','c')).strip('-')
# --- groups and series
for r in q('select * from groups'):
    b.node('group:%d' % r['group_id'], r['name'] or 'Group %d' % r['group_id'], 'Group',
           aliases=['Group %d' % r['group_id'], r['symbol']] if r['name'] else [r['symbol']], group_id=r['group_id'], symbol=r['symbol'])
for r in q('select * from series'):
    b.node('series:' + slug(r['name']), r['name'], 'Series', color=r['color'])
SER = {r['id']: 'series:' + slug(r['name']) for r in q('select * from series')}
# --- who: canonical (fullest spelling in the source) <- other spellings in the source
SAME = {'Sir William Ramsay': ['Sir William Ramsey'], 'P.T.Cleve': None, 'Sir Humphrey Davy': ['Sir H. Davy'],
        'Per Theodor Cleve': ['P.T.Cleve'], 'Jöns Berzelius': ['J. Berzelius'], 'Martin Klaproth': ['M. Klaproth'],
        'Robert Bunsen': ['R. Bunsen'], 'Gustov Kirchoff': ['G. Kirchoff'], 'Émillo Segrè': ['E.Segré'],
        'M. W. Travers': ['M.W. Travers'], 'Smithson Tenant': ['S.Tenant'], 'Louis Vauquelin': ['L.N.Vauquelin'],
        'G.T. Seaborg': ['G.T.Seaborg'], 'A. Ghiorso': ['A.Ghiorso'], 'E.M. McMillan': ['E.M.McMillan'], 'R.A. James': ['R.A.James'],
        'S.G. Tompson': ['S.G.Tompson'], 'K. Street Jr.': ['K.Street Jr.']}
CAN = {v: k for k, vs in SAME.items() for v in (vs or [])}
SPLIT = {'Pierre and Marie Curie': ['Pierre Curie', 'Marie Curie'], 'Fausto and Juan José de Elhuyar': ['Fausto de Elhuyar', 'Juan José de Elhuyar']}
INST = {'Argonne', 'Los Alamos', 'U of Calif', 'Nobel Institute for Physics', 'Soviet Nuclear Research', 'U. of Cal at Berkeley',
        'Heavy Ion Research Laboratory (HIRL)', 'GSI Helmholtz Centre for Heavy Ion Research', 'RIKEN', 'Joint Institute for Nuclear Research',
        'Lawrence Livermore National Laboratory', 'Oak Ridge National Laboratory'}
def discoverers(s):
    if not s or s.lower().startswith('known to'): return []
    if s in SPLIT: return SPLIT[s]
    out = [CAN.get(x.strip(), x.strip()) for x in re.split(r'[,;/]', s.replace(', et al', ''))]
    return [x for x in out if x]
# --- where
CC = {'USA': 'United States', 'Austrailia': 'Australia', 'Kyrgzstan': 'Kyrgyzstan', 'Germany (likely)': 'Germany', 'DRC': 'Democratic Republic of the Congo'}
CALIAS = {'United States': ['USA', 'US'], 'Democratic Republic of the Congo': ['DRC'], 'Republic of Korea': ['South Korea']}
def places(s, ranked):
    if not s: return []
    if ranked: s = [x for x in re.split(r'\s*\d\)\s*', s) if x]
    else: s = s.split('/')
    out = []
    for x in s:
        for y in x.split(': '):
            y = y.strip()
            if y.startswith('Unknown'): continue
            out.append(CC.get(y, y))
    return out
def place(n):
    i = 'country:' + slug(n)
    if i not in b.nodes: b.node(i, n, 'Country', aliases=CALIAS.get(n))
    return i
# --- phase transitions: the entry not marked as a crystal transition; white phosphorus before red
PT = {}
for r in q('select * from phasetransitions where coalesce(is_transition,0)=0 order by id'):
    PT.setdefault(r['atomic_number'], r)
COLS = ['atomic_number', 'symbol', 'atomic_weight', 'period', 'block', 'electronic_configuration', 'density', 'atomic_radius', 'vdw_radius',
        'en_pauling', 'electron_affinity', 'evaporation_heat', 'fusion_heat', 'specific_heat_capacity', 'thermal_conductivity',
        'abundance_crust', 'abundance_sea', 'lattice_structure', 'cas', 'discovery_year', 'price_per_kg', 'relative_supply_risk',
        'production_concentration', 'recycling_rate', 'substitutability', 'cpk_color', 'name_origin', 'sources', 'uses']
els = q('select * from elements order by atomic_number')
EL = {}
for r in els:
    i = 'element:' + r['symbol']; EL[r['atomic_number']] = (i, r['name'], r['symbol'])
    p = PT.get(r['atomic_number'], {})
    b.node(i, r['name'], 'Element', aliases=[r['symbol']] + {13: ['Aluminium'], 16: ['Sulphur'], 55: ['Caesium']}.get(r['atomic_number'], []),
           text=r['description'], **{k: r[k] for k in COLS}, melting_point=p.get('melting_point') and round(p['melting_point'], 4),
           boiling_point=p.get('boiling_point') and round(p['boiling_point'], 4),
           is_radioactive=bool(r['is_radioactive']), is_monoisotopic=bool(r['is_monoisotopic']))
for r in els:
    me = EL[r['atomic_number']][0]
    if r['group_id']: b.edge(me, 'group', 'group:%d' % r['group_id'])
    b.edge(me, 'series', SER[r['series_id']])
    for d in discoverers(r['discoverers']):
        t = 'Institution' if d in INST else 'Person'
        i = t.lower() + ':' + slug(d)
        if i not in b.nodes: b.node(i, d, t, aliases=SAME.get(d))
        b.edge(me, 'discoverers', i)
    for x in places(r['discovery_location'], 0): b.edge(me, 'discovery_location', place(x))
    for x in places(r['top_3_producers'], 1): b.edge(me, 'top_3_producers', place(x))
    for x in places(r['top_3_reserve_holders'], 1): b.edge(me, 'top_3_reserve_holders', place(x))
    for col, T in (('geochemical_class', 'Geochemical class'), ('goldschmidt_class', 'Goldschmidt class')):
        v = r[col]
        if v:
            i = col.split('_')[0] + ':' + slug(v)
            if i not in b.nodes: b.node(i, v, T, aliases={'litophile': ['lithophile']}.get(v))
            b.edge(me, col, i)
# --- isotopes
ISO = {}
for r in q('select * from isotopes order by atomic_number, mass_number'):
    e, n, s = EL[r['atomic_number']]
    i = 'isotope:%s-%d' % (s, r['mass_number'])
    if i in b.nodes: continue
    ISO[r['id']] = i
    b.node(i, '%s-%d' % (n, r['mass_number']), 'Isotope', aliases=['%s-%d' % (s, r['mass_number']), '%d%s' % (r['mass_number'], s)],
           mass_number=r['mass_number'], mass=r['mass'], abundance=r['abundance'], is_radioactive=bool(r['is_radioactive']),
           half_life=r['half_life'], half_life_unit=r['half_life_unit'], spin=r['spin'], parity=r['parity'], discovery_year=r['discovery_year'])
    b.edge(i, 'element', e)
MODE = {'A': 'alpha decay', 'B-': 'beta-minus decay', 'B+': 'beta-plus decay', 'EC': 'electron capture', 'SF': 'spontaneous fission', 'p': 'proton emission',
        'n': 'neutron emission', '2p': 'two-proton emission', '2n': 'two-neutron emission', '3p': 'three-proton emission', '3n': 'three-neutron emission', '4n': 'four-neutron emission',
        '2B-': 'double beta-minus decay', '2B+': 'double beta-plus decay', 'e+': 'positron emission', 'B-n': 'beta-delayed neutron emission', 'B+p': 'beta-delayed proton emission',
        'B-A': 'beta-minus-delayed alpha emission', 'B+A': 'beta-plus-delayed alpha emission', 'B+SF': 'beta-plus-delayed fission', 'B-SF': 'beta-minus-delayed fission'}
for r in q('select * from isotopedecaymodes where coalesce(is_allowed_not_observed,0)=0 order by id'):
    if r['isotope_id'] not in ISO: continue
    m = r['mode']; i = 'mode:' + m
    if i not in b.nodes:
        b.node(i, MODE.get(m) or (m + ' emission' if re.match(r'\d+[A-Z]', m) else m), 'Decay mode', aliases=[m])
    b.edge(ISO[r['isotope_id']], 'decay_modes', i)
b.write()
# --- schema.toml from mendeleev's own propertymetadata table
doc = {(r['class_name'], r['attribute_name']): (r['description'].strip(), r['unit']) for r in q('select * from propertymetadata')}
AL = {'en_pauling': 'electronegativity_pauling', 'electronic_configuration': 'econf'}
def one(c, k):
    d = doc.get((c, AL.get(k, k)))
    return None if not d else '%s: %s%s' % (k, d[0].rstrip('.'), ' (%s)' % d[1] if d[1] else '')
def esc(s): return s.replace('\\', '\\\\').replace('"', '\\"')
with open(os.path.join(HERE, 'schema.toml'), 'w') as f:
    for c, cols in (('Element', COLS + ['melting_point', 'boiling_point', 'is_radioactive', 'is_monoisotopic']),
                    ('Isotope', ['mass_number', 'mass', 'abundance', 'is_radioactive', 'half_life', 'half_life_unit', 'spin', 'parity', 'discovery_year'])):
        f.write('[types."%s"]\ndescription = "%s"\n\n' % (c, esc('; '.join(x for x in (one(c, k) for k in cols) if x))))
    for k in ('group', 'series', 'discoverers', 'discovery_location', 'top_3_producers', 'top_3_reserve_holders', 'geochemical_class', 'goldschmidt_class'):
        f.write('[relations."%s"]\ndescription = "%s"\n\n' % (k, esc(doc[('Element', k)][0])))
    f.write('[relations."decay_modes"]\ndescription = "%s"\n' % esc(doc[('Isotope', 'decay_modes')][0]))
