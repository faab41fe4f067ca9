"""Shared writing helpers: nodes.jsonl, edges.tsv."""
import json, math, os
def clean(v):
    if v is None: return None
    if hasattr(v, 'item'): v = v.item()
    if isinstance(v, float):
        if math.isnan(v): return None
        if v.is_integer() and abs(v) < 1e15: pass
        return v
    if isinstance(v, str):
        v = v.strip()
        return v or None
    if isinstance(v, list):
        return v or None
    return v
class Base:
    def __init__(self, d):
        self.d, self.nodes, self.edges = d, {}, {}
    def node(self, id, name, type, **a):
        assert id not in self.nodes, id
        assert name, id
        o = {'id': id, 'name': name, 'type': type}
        for k, v in a.items():
            v = clean(v)
            if v is not None: o[k] = v
        self.nodes[id] = o
    def edge(self, s, r, t):
        self.edges[(s, r, t)] = 1
    def write(self):
        for s, r, t in self.edges:
            assert s in self.nodes and t in self.nodes, (s, r, t)
            assert not any(c in x for x in (s, r, t) for c in '\t\n')
        with open(os.path.join(self.d, 'nodes.jsonl'), 'w', encoding='utf-8') as f:
            for o in self.nodes.values(): f.write(json.dumps(o, ensure_ascii=False) + '\n')
        with open(os.path.join(self.d, 'edges.tsv'), 'w', encoding='utf-8') as f:
            f.write('source\trelation\ttarget\n')
            for e in self.edges: f.write('\t'.join(e) + '\n')
        from collections import Counter
        print(len(self.nodes), 'nodes', dict(Counter(o['type'] for o in self.nodes.values())))
        print(len(self.edges), 'edges', dict(Counter(e[1] for e in self.edges)))
