"""Metadata of the packages installed in venv_pkgs (see wanted.txt). Run: venv_pkgs/bin/python pypackages/make.py"""
import os, sys, re
import importlib.metadata as M
HERE = os.path.dirname(os.path.abspath(__file__)); ROOT = os.path.dirname(HERE); sys.path.insert(0, ROOT)
from common import Base
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canon
b = Base(HERE)
def slug(s): return re.sub(r'[^a-z0-9+#.]+', '-', s.lower()).strip('-')
ds = {}
for d in M.distributions():
    if 'site-packages' in str(d._path) and '_vendor' not in str(d._path): ds.setdefault(canon(d.metadata['Name']), d)
# ---- licences -> short names
def lic(d):
    m = d.metadata
    e = m.get('License-Expression')
    if e: return [x.strip('() ') for x in re.split(r'\s+(?:OR|AND)\s+', e)]
    out = []
    for c in m.get_all('Classifier') or []:
        if c.startswith('License :: ') and c != 'License :: OSI Approved': out.append(CL.get(c.split(' :: ')[-1], c.split(' :: ')[-1]))
    t = (m.get('License') or '').strip()
    short = SH.get(t.lower())
    if short and (not out or out == ['BSD']): return [short]
    if re.match(r'BSD 3-Clause License', t) and (not out or out == ['BSD']): return ['BSD-3-Clause']
    if re.match(r'BSD 2-Clause License', t) and (not out or out == ['BSD']): return ['BSD-2-Clause']
    if t.startswith('MIT License') and not out: return ['MIT']
    return out or (re.split(r'\s+(?:OR|AND)\s+', t) if t and t != 'UNKNOWN' and len(t) < 40 else [])
CL = {'MIT License': 'MIT', 'BSD License': 'BSD', 'Apache Software License': 'Apache-2.0', 'ISC License (ISCL)': 'ISC', 'Python Software Foundation License': 'PSF-2.0',
      'Mozilla Public License 2.0 (MPL 2.0)': 'MPL-2.0', 'GNU General Public License (GPL)': 'GPL', 'GNU General Public License v3 or later (GPLv3+)': 'GPL-3.0-or-later',
      'GNU Lesser General Public License v2 or later (LGPLv2+)': 'LGPL-2.0-or-later', 'GNU Lesser General Public License v3 (LGPLv3)': 'LGPL-3.0-only', 'The Unlicense (Unlicense)': 'Unlicense',
      'GNU Library or Lesser General Public License (LGPL)': 'LGPL', 'GNU General Public License v3 (GPLv3)': 'GPL-3.0-only', 'GNU General Public License v2 or later (GPLv2+)': 'GPL-2.0-or-later',
      'GNU Lesser General Public License v2 (LGPLv2)': 'LGPL-2.0-only', 'Zope Public License': 'ZPL-2.1', 'Academic Free License (AFL)': 'AFL', 'GNU Lesser General Public License v3 or later (LGPLv3+)': 'LGPL-3.0-or-later'}
SH = {'mit': 'MIT', 'mit license': 'MIT', 'mit license (mit)': 'MIT', 'expat license': 'MIT', 'apache-2.0': 'Apache-2.0', 'apache 2.0': 'Apache-2.0', 'apache 2': 'Apache-2.0', 'apache license 2.0': 'Apache-2.0', 'apache license, version 2.0': 'Apache-2.0',
      'apache software license': 'Apache-2.0', 'bsd-3-clause': 'BSD-3-Clause', '3-clause bsd license': 'BSD-3-Clause', 'new bsd': 'BSD-3-Clause', 'modified bsd license': 'BSD-3-Clause', 'bsd-2-clause': 'BSD-2-Clause', 'bsd': 'BSD', 'isc license': 'ISC', 'psf-2.0': 'PSF-2.0', 'psfl': 'PSF-2.0', 'unlicense': 'Unlicense'}
LNAME = {'MIT': ['MIT License'], 'Apache-2.0': ['Apache License 2.0', 'Apache'], 'BSD-3-Clause': ['BSD 3-Clause License', 'New BSD'], 'BSD-2-Clause': ['BSD 2-Clause License'], 'BSD': ['BSD License'], 'PSF-2.0': ['Python Software Foundation License'],
         'MPL-2.0': ['Mozilla Public License 2.0'], 'ISC': ['ISC License'], 'ZPL-2.1': ['Zope Public License']}
# ---- people
def people(m, a, e):
    names, mail = m.get(a) or '', m.get(e) or ''
    out = []
    for n, addr in re.findall(r'(?:"([^"]+)"|([^<>,"]+?))?\s*<([^<>]+)>' if 0 else r'"?([^"<>,]*?)"?\s*<([^<>]+)>', mail):
        if n.strip(): out.append((n.strip(), addr.strip()))
    names = re.sub(r'<[^>]*>', '', names)
    names = re.sub(r',?\s+(and|&)\s+(others|contributors|individual contributors|many others).*$', '', names, flags=re.I)
    if not out and names:
        for n in re.split(r',\s*|\s+and\s+|\s*&\s*', names):
            n = n.strip(' .')
            if n and n.lower() not in ('unknown', 'inc', 'jr', 'ltd'): out.append((n, mail if '@' in mail and ',' not in mail and '<' not in mail else None))
    out = [(q.strip(), x) for n, x in out for q in re.split(r';\s*| and (?=[A-Z])', n)]
    JUNK = {'unknown', 'the community', 'a lot of people', 'see authors', 'see authors.txt', 'others (see authors)', 'protobuf@googlegroups.com', 'docutils-develop list'}
    return [(re.sub(r'\s+and (individual )?contributors$|\s+et al$', '', n), x) for n, x in out if n.lower() not in JUNK]
def text(d):
    s = d.metadata.get('Summary') or ''
    body = d.metadata.get_payload() or d.metadata.get('Description') or ''
    body = re.sub(r'<[^>]+>', ' ', body)
    body = re.sub(r'\[?!\[[^\]]*\]\([^)]*\)(\]\([^)]*\))?', ' ', body)
    body = re.sub(r'(?m)^\s*\.\. .*(\n[ \t]+\S.*)*', ' ', body)
    body = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', body)
    body = re.sub(r'(?m)^\s*[=\-~#*^`]{3,}.*$', ' ', body)
    body = re.sub(r'[ \t]+', ' ', re.sub(r'\n\s*\n\s*', '\n\n', body)).strip()
    if len(body) > 1500: body = body[:1500].rsplit(' ', 1)[0] + ' ...'
    return (s + '\n\n' + body).strip()
for k, d in sorted(ds.items()):
    m = d.metadata
    cl = m.get_all('Classifier') or []
    files = d.files or []
    wheel = d.read_text('WHEEL') or ''
    st = [c.split(' :: ')[1] for c in cl if c.startswith('Development Status')]
    b.node('package:' + k, m['Name'], 'Package', aliases=[k] if k != m['Name'] else None, text=text(d), summary=m.get('Summary'), version=m['Version'], requires_python=m.get('Requires-Python'),
           development_status=st[0] if st else None, typed='Typing :: Typed' in cl or any(f.name == 'py.typed' for f in files),
           root_is_purelib='Root-Is-Purelib: true' in wheel, installed_files=len(files), installed_size=sum(f.size or 0 for f in files),
           home_page=m.get('Home-page') or next((u.split(',', 1)[1].strip() for u in m.get_all('Project-URL') or [] if u.lower().startswith(('home', 'source', 'repo'))), None))
def topic(c):
    parts = c.split(' :: ')[1:]; last = None
    for n in range(1, len(parts) + 1):
        i = 'topic:' + '/'.join(slug(p) for p in parts[:n])
        if i not in b.nodes:
            b.node(i, parts[n - 1], 'Topic', classifier='Topic :: ' + ' :: '.join(parts[:n]))
            if last: b.edge(i, 'parent_topic', last)
        last = i
    return last
def simple(T, pre, name, **a):
    i = pre + ':' + slug(name)
    if i not in b.nodes: b.node(i, name, T, **a)
    return i
for k, d in sorted(ds.items()):
    m, me = d.metadata, 'package:' + k
    for r in m.get_all('Requires-Dist') or []:
        q = Requirement(r); t = canon(q.name)
        if t not in ds: continue
        if q.marker is None or q.marker.evaluate({'extra': ''}): b.edge(me, 'requires', 'package:' + t)
        elif 'extra' in str(q.marker) and t != k: b.edge(me, 'requires_extra', 'package:' + t)
    for a, e, rel in (('Author', 'Author-email', 'author'), ('Maintainer', 'Maintainer-email', 'maintainer')):
        for n, mail in people(m, a, e):
            i = simple('Author', 'author', n, email=mail)
            b.edge(me, rel, i)
    for l in lic(d): b.edge(me, 'license', simple('License', 'license', l, aliases=LNAME.get(l)))
    for c in m.get_all('Classifier') or []:
        p = c.split(' :: ')
        if p[0] == 'Topic': b.edge(me, 'topic', topic(c))
        elif p[0] == 'Framework': b.edge(me, 'framework', simple('Framework', 'framework', p[1]))
        elif p[0] == 'Intended Audience': b.edge(me, 'intended_audience', simple('Audience', 'audience', p[1]))
        elif p[0] == 'Operating System': b.edge(me, 'operating_system', simple('Operating system', 'os', p[-1]))
        elif p[0] == 'Programming Language' and len(p) == 3 and re.fullmatch(r'\d\.\d+', p[2]): b.edge(me, 'python_version', simple('Python version', 'python', 'Python ' + p[2]))
        elif p[0] == 'Programming Language' and len(p) == 2 and p[1] != 'Python': b.edge(me, 'programming_language', simple('Programming language', 'lang', p[1]))
    for ep in d.entry_points:
        if ep.group == 'console_scripts': b.edge(me, 'console_script', simple('Command', 'command', ep.name))
b.write()
