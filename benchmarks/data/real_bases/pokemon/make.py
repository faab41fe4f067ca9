"""Pokémon from poke_env's static data (generation 9). Run: venv/bin/python pokemon/make.py"""
import os, sys, re, json, importlib.util
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from common import Base
S = os.path.join(list(importlib.util.find_spec('poke_env').submodule_search_locations)[0], 'data', 'static')
load = lambda f: json.load(open(os.path.join(S, f), encoding='utf-8'))
dex, moves, learn, chart = load('pokedex/gen9pokedex.json'), load('moves/gen9moves.json'), load('learnset.json'), load('typechart/gen9typechart.json')
b = Base(HERE)
slug = lambda s: re.sub(r'[^a-z0-9]+', '-', s.lower().replace('é', 'e').replace("'", '').replace('’', '')).strip('-')
F = ('Alola', 'Galar', 'Hisui', 'Paldea', 'Mega', 'Primal', 'Origin', 'Therian')
ref = {x for v in dex.values() for x in v.get('evos', []) + [v.get('prevo')]}
keep = {k: v for k, v in dex.items() if v.get('num', 0) > 0 and not v.get('isCosmeticForme') and 'Totem' not in v.get('forme', '')
        and (not v.get('forme') or v['forme'].startswith(F) or v['name'] in ref)}
ID = {v['name']: 'pokemon:' + slug(v['name']) for v in keep.values()}
def get(kind, typ, name):
    i = kind + ':' + slug(name)
    if i not in b.nodes: b.node(i, name, typ)
    return i
# --- types: damageTaken 1 = takes double, 2 = takes half, 3 = takes none
TY = sorted(k.capitalize() for k in chart if k != 'stellar')
for t in TY: get('type', 'Type', t)
for t in TY:
    for a, c in chart[t.lower()]['damageTaken'].items():
        if a in TY and c: b.edge('type:' + t.lower(), {1: 'weak_to', 2: 'resists', 3: 'immune_to'}[c], 'type:' + a.lower())
# --- Pokémon
WORD = {'Alola': 'Alolan', 'Galar': 'Galarian', 'Hisui': 'Hisuian', 'Paldea': 'Paldean', 'Mega': 'Mega', 'Primal': 'Primal'}
for k, v in sorted(keep.items(), key=lambda x: (x[1]['num'], x[1].get('forme', ''))):
    f = v.get('forme'); al = []
    if f in WORD: al = [WORD[f] + ' ' + v['baseSpecies']]
    elif f in ('Mega-X', 'Mega-Y', 'Mega-Z'): al = ['Mega %s %s' % (v['baseSpecies'], f[-1])]
    b.node(ID[v['name']], v['name'], 'Pokemon', aliases=al, num=v['num'], forme=f, heightm=v['heightm'], weightkg=v['weightkg'], color=v['color'],
           **v['baseStats'], gender=v.get('gender'), evoLevel=v.get('evoLevel'), evoType=v.get('evoType'), evoCondition=v.get('evoCondition'))
for k, v in keep.items():
    me = ID[v['name']]
    for t in v['types']: b.edge(me, 'types', 'type:' + t.lower())
    for a in v['abilities'].values(): b.edge(me, 'abilities', get('ability', 'Ability', a))
    for g in v['eggGroups']: b.edge(me, 'eggGroups', get('egg-group', 'Egg group', g))
    for g in v.get('tags', []): b.edge(me, 'tags', get('tag', 'Tag', g))
    for e in v.get('evos', []):
        if e in ID: b.edge(me, 'evos', ID[e])
    if v.get('prevo') in ID: b.edge(ID[v['prevo']], 'evos', me)
    if v.get('evoItem'): b.edge(me, 'evoItem', get('item', 'Item', v['evoItem']))
    if v.get('baseSpecies') in ID: b.edge(me, 'baseSpecies', ID[v['baseSpecies']])
# --- moves of generation 9, and who learns them by levelling up there
for k, m in moves.items():
    if m.get('isNonstandard') or m['type'] not in TY: continue
    i = 'move:' + slug(m['name'])
    b.node(i, m['name'], 'Move', category=m['category'], basePower=m['basePower'] or None, accuracy=None if m['accuracy'] is True else m['accuracy'],
           pp=m['pp'], priority=m['priority'])
    b.edge(i, 'type', 'type:' + m['type'].lower())
for k, v in keep.items():
    for x, how in (learn.get(k, {}).get('learnset') or {}).items():
        if any(h.startswith('9L') for h in how) and x in moves:
            i = 'move:' + slug(moves[x]['name'])
            if i in b.nodes: b.edge(ID[v['name']], 'learnset', i)
b.write()
