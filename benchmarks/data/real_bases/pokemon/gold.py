import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
q, v = k.nodes, k.value
P = lambda n: N(n, 'Pokemon')
M = lambda n: N(n, 'Move')
Ty = lambda n: N(n, 'Type')
PK, MV = T('Pokemon'), T('Move')
typ = lambda n: I(Ty(n), 'types')
mtyp = lambda n: I(Ty(n), 'type')
abil = lambda n: I(N(n, 'Ability'), 'abilities')
tag = lambda n: I(N(n, 'Tag'), 'tags')
egg = lambda n: I(N(n, 'Egg group'), 'eggGroups')
# list
q('list', 'What does Eevee evolve into?', O(P('Eevee'), 'evos'))
q('list', 'what type is gengar', O(P('Gengar'), 'types'))
q('list', 'Which Pokémon do you get with a Thunder Stone?', I(N('Thunder Stone', 'Item'), 'evoItem'))
q('list', 'abilities of Garchomp', O(P('Garchomp'), 'abilities'))
q('list', "What's the fire type weak against?", O(Ty('Fire'), 'weak_to'))
q('list', 'Which types are immune to Ghost?', I(Ty('Ghost'), 'immune_to'))
q('list', 'list all the ultra beasts', tag('Ultra Beast'))
q('list', 'Which pokemon have the ability Speed Boost?', abil('Speed Boost'))
q('list', 'moves pikachu learns by leveling up', O(P('Pikachu'), 'learnset'))
q('list', 'Which Pokémon can learn Spore?', I(M('Spore'), 'learnset'))
q('list', 'what does dragonair evolve from', I(P('Dragonair'), 'evos'))
q('list', "What types are Slowpoke's evolutions?", O(O(P('Slowpoke'), 'evos'), 'types'))
q('list', 'I want the abilities of every Pokémon you get from a Moon Stone', O(I(N('Moon Stone', 'Item'), 'evoItem'), 'abilities'))
# intersection
q('intersection', 'Which Pokémon are both fire and ghost type?', typ('Fire') & typ('Ghost'))
q('intersection', 'water pokemon with Intimidate', typ('Water') & abil('Intimidate'))
q('intersection', 'Which Electric moves does Luxray learn?', O(P('Luxray'), 'learnset') & mtyp('Electric'))
q('intersection', 'mythical pokemon that are steel types', tag('Mythical') & typ('Steel'))
# negation
q('negation', "Which Ultra Beasts aren't bug types?", tag('Ultra Beast') - typ('Bug'))
q('negation', 'paradox pokemon that are neither fighting nor electric', tag('Paradox') - typ('Fighting') - typ('Electric'))
q('negation', 'Which members of the Dragon egg group are Water but not Dragon?', (egg('Dragon') & typ('Water')) - typ('Dragon'))
# condition
q('condition', 'Which Pokémon weigh more than 900 kg?', num(PK, 'weightkg', 900))
q('condition', 'pokemon taller than 12 meters', num(PK, 'heightm', 12))
q('condition', 'water moves with a base power of at least 110', num(mtyp('Water'), 'basePower', 110, None, False))
q('condition', 'pink psycic pokemon', W(typ('Psychic'), lambda o: o['color'] == 'Pink'))
q('condition', 'Which dragon types do you only get by evolving at level 50 or above?', num(typ('Dragon'), 'evoLevel', 50, None, False))
# superlative
q('superlative', 'whats the heaviest pokemon', top(PK, 'weightkg'))
q('superlative', 'Which Pokémon has the highest HP?', top(PK, 'hp'))
q('superlative', 'Which ability is shared by the most Pokémon?', top(T('Ability'), lambda x: len(I(x, 'abilities'))))
q('superlative', 'most powerful Grass move', top(mtyp('Grass'), 'basePower'))
# count
v('count', 'How many ice type Pokémon are there?', len(typ('Ice')))
v('count', 'how many fairy moves exist', len(mtyp('Fairy')))
v('count', 'How many types does steel resist?', len(O(Ty('Steel'), 'resists')))
# yesno
v('yesno', 'Is Lucario a steel type?', Ty('Steel') in O(P('Lucario'), 'types'))
v('yesno', 'does magikarp evolve into milotic?', P('Milotic') in O(P('Magikarp'), 'evos'))
v('yesno', 'Can Ditto have the ability Imposter?', N('Imposter') in O(P('Ditto'), 'abilities'))
# value
v('value', 'How much does Snorlax weigh?', A(P('Snorlax'), 'weightkg'))
v('value', 'pokedex number of Mew', A(P('Mew'), 'num'))
v('value', 'at what level do you get dragonite', A(P('Dragonite'), 'evoLevel'))
v('value', "What's the accuracy of Hydro Pump?", A(M('Hydro Pump'), 'accuracy'))
# comparison
q('comparison', 'Which one is taller, Onix or Steelix?', top({P('Onix'), P('Steelix')}, 'heightm'))
v('comparison', 'Is Crobat faster than Electrode?', A(P('Crobat'), 'spe') > A(P('Electrode'), 'spe'))
# describe
q('describe', 'Tell me about Mewtwo.', P('Mewtwo'))
# none
assert not O(P('Tauros'), 'evos')
k.none('Where can I catch a Ralts?')
k.none('What does Tauros evolve into?')
k.none('who designed Pikachu')
k.write('pokemon')
