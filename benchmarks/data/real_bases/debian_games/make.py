"""Debian 12 (bookworm) main/arm64, section games, from `apt-cache dumpavail` (dl/avail.txt) and the
Translation-en index (dl/Translation-en.xz; long descriptions, matched by Description-md5). Run: python debian_games/make.py"""
import os, sys, re, lzma
from collections import defaultdict
HERE = os.path.dirname(os.path.abspath(__file__)); ROOT = os.path.dirname(HERE); sys.path.insert(0, ROOT)
from common import Base
def stanzas(f):
    cur, key = {}, None
    for line in f:
        line = line.rstrip('\n')
        if not line:
            if cur: yield cur
            cur, key = {}, None
        elif line[0] in ' \t':
            cur[key] += '\n' + line[1:]
        else:
            key, _, v = line.partition(':'); cur[key] = v.strip()
    if cur: yield cur
pk = {}
for s in stanzas(open(ROOT + '/dl/avail.txt', encoding='utf-8')):
    if s['Package'] not in pk: pk[s['Package']] = s
long = {}
for s in stanzas(lzma.open(ROOT + '/dl/Translation-en.xz', 'rt', encoding='utf-8')):
    long[s['Description-md5']] = s['Description-en']
def desc(p):
    d = long.get(p.get('Description-md5'), p.get('Description', ''))
    syn, _, body = d.partition('\n')
    paras, cur = [], []
    for l in body.split('\n'):
        if l.strip() == '.': paras.append(cur); cur = []
        else: cur.append(l)
    paras.append(cur)
    out = []
    for p_ in paras:
        out.append('\n'.join(p_) if any(l.startswith((' ', '\t')) for l in p_) else ' '.join(p_))
    return syn, (syn + '.\n\n' + '\n\n'.join(x for x in out if x.strip())).strip()
games = {n: p for n, p in pk.items() if p.get('Section') == 'games'}
b = Base(HERE)
FACET = {'game': ('Genre', 'genre', {'arcade': 'Action and Arcade', 'fps': 'First person shooter', 'rpg': 'Role-playing', 'rpg:rogue': 'Rogue-Like RPG', 'mud': 'Multiplayer RPG', 'board:chess': 'Chess',
                          'sport': 'Sport Games', 'sport:racing': 'Racing', 'tetris': 'Tetris-like', 'toys': 'Toy or Gimmick', 'demos': 'Demo', 'board': 'Board', 'typing': 'Typing Tutor', 'platform': 'Platform', 'card': 'Card'}),
         'implemented-in': ('Programming language', 'implemented_in', {'c++': 'C++', 'php': 'PHP', 'tcl': 'Tcl', 'tk': 'Tk', 'objc': 'Objective-C', 'c-sharp': 'C#', 'ocaml': 'OCaml'}),
         'uitoolkit': ('UI toolkit', 'uitoolkit', {'sdl': 'SDL', 'gtk': 'GTK+', 'qt': 'Qt', 'ncurses': 'Ncurses', 'xlib': 'X library', 'tk': 'Tk', 'wxwidgets': 'wxWidgets', 'athena': 'Athena Widgets', 'glut': 'GLUT', 'fltk': 'FLTK'}),
         'interface': ('Interface', 'interface', {'x11': 'X Window System', '3d': '3D', 'text-mode': 'Text-based Interactive', 'graphical': 'Graphical', 'commandline': 'Command Line', 'web': 'World Wide Web'}),
         'network': ('Network role', 'network', {}), 'role': ('Role', 'role', {'app-data': 'Application data', 'program': 'Program', 'metapackage': 'Metapackage', 'data': 'Standalone data', 'documentation': 'Documentation'})}
def slug(s): return re.sub(r'[^a-z0-9+#.:]+', '-', s.lower()).strip('-')
def add(n, p, full):
    syn, text = desc(p)
    b.node('pkg:' + n, n, 'Package', text=text, summary=syn, version=p['Version'], installed_size=int(p.get('Installed-Size') or 0) or None, size=int(p.get('Size') or 0) or None,
           architecture=p['Architecture'], priority=p.get('Priority'), homepage=p.get('Homepage'), source=(p.get('Source') or n).split(' ')[0])
    s = 'section:' + p['Section']
    if s not in b.nodes: b.node(s, p['Section'], 'Section')
    b.edge('pkg:' + n, 'section', s)
for n, p in sorted(games.items()): add(n, p, 1)
for n, p in sorted(games.items()):
    me = 'pkg:' + n
    m = re.match(r'(.*?)\s*<([^>]*)>', p['Maintainer'])
    mi = 'maintainer:' + slug(m.group(1))
    if mi not in b.nodes: b.node(mi, m.group(1).strip('" '), 'Maintainer', email=m.group(2))
    b.edge(me, 'maintainer', mi)
    for tag in re.split(r',\s*', p.get('Tag', '').replace('\n', ' ')):
        tag = tag.strip(); f, _, v = tag.partition('::')
        if f in FACET and v and v != 'TODO':
            T, rel, names = FACET[f]
            nm = names.get(v, v.replace('-', ' ').replace(':', ': ').capitalize())
            if nm is None: continue
            i = 'tag:' + tag
            if i not in b.nodes: b.node(i, nm, T, aliases=[tag])
            b.edge(me, rel, i)
    for fld, rel in (('Depends', 'depends'), ('Pre-Depends', 'depends'), ('Recommends', 'recommends'), ('Suggests', 'suggests'), ('Conflicts', 'conflicts'), ('Breaks', 'breaks'), ('Enhances', 'enhances'), ('Provides', 'provides')):
        for alt in re.split(r'[,|]', p.get(fld, '').replace('\n', ' ')):
            t = re.sub(r'\s*[\(\[].*', '', alt).strip().split(':')[0]
            if not t: continue
            if t in pk:
                if 'pkg:' + t not in b.nodes:
                    if rel in ('conflicts', 'breaks', 'provides'): continue
                    add(t, pk[t], 0)
                b.edge(me, rel, 'pkg:' + t)
            elif rel == 'provides':
                v = 'virtual:' + t
                if v not in b.nodes: b.node(v, t, 'Virtual package')
                b.edge(me, rel, v)
for n, p in sorted(games.items()):     # dependencies on virtual packages
    for fld, rel in (('Depends', 'depends'), ('Recommends', 'recommends'), ('Suggests', 'suggests')):
        for alt in re.split(r'[,|]', p.get(fld, '').replace('\n', ' ')):
            t = re.sub(r'\s*[\(\[].*', '', alt).strip().split(':')[0]
            if 'virtual:' + t in b.nodes: b.edge('pkg:' + n, rel, 'virtual:' + t)
b.write()
with open(os.path.join(HERE, 'schema.toml'), 'w') as f:   # wording from Debian Policy, chapters 5 and 7
    f.write('''[types."Package"]
description = "Debian binary package. installed_size: estimate of the total amount of disk space required to install the package, in kibibytes; size: size in bytes of the .deb file; source: name of the source package; text: the package description, its first line is the synopsis"

[types."Virtual package"]
description = "A name that other packages provide, without a package of that name"

[relations."depends"]
description = "This declares an absolute dependency"

[relations."recommends"]
description = "This declares a strong, but not absolute, dependency"

[relations."suggests"]
description = "This is used to declare that one package may be more useful with one or more others"

[relations."enhances"]
description = "Similar to suggests but works in the opposite direction: this package can enhance the functionality of another package"

[relations."maintainer"]
description = "The person or group responsible for the package"

[relations."section"]
description = "The application area into which the package has been classified"
''')
