"""Helpers for the gold.py scripts: the tables of one base as sets, and a question list written to questions.jsonl."""
import json, os, sys, re
from collections import defaultdict, Counter
class KB:
    def __init__(self, d):
        self.d = d
        self.n = {}
        for l in open(os.path.join(d, 'nodes.jsonl'), encoding='utf-8'):
            o = json.loads(l); self.n[o['id']] = o
        self.o = defaultdict(set); self.i = defaultdict(set)
        for k, l in enumerate(open(os.path.join(d, 'edges.tsv'), encoding='utf-8')):
            if k == 0: continue
            s, r, t = l.rstrip('\n').split('\t')
            self.o[r, s].add(t); self.i[r, t].add(s)
        self.byname = defaultdict(list)
        for o in self.n.values(): self.byname[o['name']].append(o['id'])
        self.q = []
    def N(self, name, type=None):
        m = [x for x in self.byname[name] if type is None or self.n[x]['type'] == type]
        assert len(m) == 1, (name, m)
        return m[0]
    def _s(self, x): return {x} if isinstance(x, str) else set(x)
    def O(self, x, r):                       # targets of r from x (a node or a set)
        return set().union(*[self.o[r, y] for y in self._chk(x)]) if x else set()
    def I(self, x, r):                       # sources of r into x
        return set().union(*[self.i[r, y] for y in self._chk(x)]) if x else set()
    def _chk(self, x):
        s = self._s(x)
        for y in s: assert y in self.n, y
        return s
    def A(self, x, a): return self.n[x].get(a)
    def T(self, t):
        s = {k for k, o in self.n.items() if o['type'] == t}; assert s, t
        return s
    def of(self, s, t): return {x for x in s if self.n[x]['type'] == t}
    def W(self, s, f):                       # keep those whose record f accepts
        return {x for x in s if f(self.n[x])}
    def num(self, s, a, lo=None, hi=None, strict=True):
        out = set()
        for x in s:
            v = self.n[x].get(a)
            if v is None: continue
            if lo is not None and not (v > lo if strict else v >= lo): continue
            if hi is not None and not (v < hi if strict else v <= hi): continue
            out.add(x)
        return out
    def top(self, s, key, sign=1):           # all with the largest value; key: attribute or function of id
        f = key if callable(key) else (lambda x: self.n[x].get(key))
        v = {x: f(x) for x in s}; v = {x: y for x, y in v.items() if y is not None}
        best = max(v.values()) if sign > 0 else min(v.values())
        return {x for x in v if v[x] == best}
    def low(self, s, key): return self.top(s, key, -1)
    def nodes(self, kind, question, ans):
        ans = self._s(ans); self._chk(ans) if ans else None
        assert ans or kind == 'none', question
        self.q.append({'kind': kind, 'question': question, 'answers': sorted(ans)})
    def value(self, kind, question, v):
        assert v is not None, question
        self.q.append({'kind': kind, 'question': question, 'value': v})
    def none(self, question): self.nodes('none', question, set())
    def write(self, prefix):
        seen = set()
        with open(os.path.join(self.d, 'questions.jsonl'), 'w', encoding='utf-8') as f:
            for k, q in enumerate(self.q, 1):
                assert q['question'] not in seen, q; seen.add(q['question'])
                f.write(json.dumps({'id': '%s-%02d' % (prefix, k), **q}, ensure_ascii=False) + '\n')
        print(prefix, len(self.q), dict(Counter(q['kind'] for q in self.q)))
        if '-v' in sys.argv:
            for q in self.q:
                a = q.get('value', None) if 'value' in q else '%d: %s' % (len(q['answers']), ', '.join(self.n[x]['name'] for x in q['answers'][:25]))
                print('  [%s] %s -> %s' % (q['kind'], q['question'], a))
