import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
q, v = k.nodes, k.value
E = lambda s: 'element:' + s
P = lambda n: N(n, 'Person')
CO = lambda n: N(n, 'Country')
EL, ISO = T('Element'), T('Isotope')
ser = lambda s: I('series:' + s, 'series')
by = lambda p: I(P(p), 'discoverers')
found = lambda c: I(CO(c), 'discovery_location')
prod = lambda c: I(CO(c), 'top_3_producers')
res = lambda c: I(CO(c), 'top_3_reserve_holders')
# list
q('list', 'What are the noble gases?', ser('noble-gases'))
q('list', 'Who discovered oxygen?', O(E('O'), 'discoverers'))
q('list', 'Which elements do we owe to Humphry Davy?', by('Sir Humphrey Davy'))
q('list', 'what did marie curie discover', by('Marie Curie'))
q('list', 'Which countries mine the most lithium?', O(E('Li'), 'top_3_producers'))
q('list', 'biggest cobalt reserves - which countries?', O(E('Co'), 'top_3_reserve_holders'))
q('list', 'In which country was hafnium first found?', O(E('Hf'), 'discovery_location'))
q('list', 'Chile is among the main producers of which elements?', prod('Chile'))
q('list', 'How does U-238 decay?', O('isotope:U-238', 'decay_modes'))
q('list', 'Which elements were discovered in Scotland?', found('Scotland'))
q('list', 'list all isotopes of hydrogen', I(E('H'), 'element'))
q('list', 'Which people or labs found the noble gases?', O(ser('noble-gases'), 'discoverers'))
q('list', 'In which countries were the halogens first discovered?', O(ser('halogens'), 'discovery_location'))
q('list', 'To which group of the periodic table does the element found by Hennig Brand belong?', O(by('Hennig Brand'), 'group'))
q('list', 'elements discoverd at the Joint Institute for Nuclear Research', I(N('Joint Institute for Nuclear Research'), 'discoverers'))
q('list', 'Which elements count as metalloids?', ser('metalloids'))
q('list', 'In which countries were the elements found by Lecoq de Boisbaudran discovered?', O(by('Paul Émile Lecoq de Boisbaudran'), 'discovery_location'))
# intersection
q('intersection', 'Which lanthanides were discovered in Sweden?', ser('lanthanides') & found('Sweden'))
q('intersection', 'elements where both South Africa and Russia are top producers', prod('South Africa') & prod('Russia'))
q('intersection', 'Which chalcophile elements is Peru a leading producer of?', I(N('chalcophile'), 'goldschmidt_class') & prod('Peru'))
q('intersection', 'uranium isotopes that undergo spontaneous fission', I(E('U'), 'element') & I('mode:SF', 'decay_modes'))
q('intersection', 'Which elements did Seaborg and Ghiorso find together?', by('G.T. Seaborg') & by('A. Ghiorso'))
# negation
q('negation', 'Which halogens were not discovered in France?', ser('halogens') - found('France'))
q('negation', 'noble gases William Ramsay had no part in discovering', ser('noble-gases') - by('Sir William Ramsay'))
q('negation', "Elements where Australia is a top producer but China isn't", prod('Australia') - prod('China'))
# condition
q('condition', 'elements discovered between 1800 and 1805', num(EL, 'discovery_year', 1800, 1805, False))
q('condition', 'Which elements melt above 3000 kelvin?', num(EL, 'melting_point', 3000))
q('condition', 'elements that cost more than 1 million dollars per kg', num(EL, 'price_per_kg', 1e6))
q('condition', 'Which elements were found before 1750?', num(EL, 'discovery_year', None, 1750))
q('condition', 'nonradioactive noble gases', W(ser('noble-gases'), lambda o: not o['is_radioactive']))
q('condition', 'transition metals denser than 20 g/cm3 but lighter than 23 g/cm3', num(ser('transition-metals'), 'density', 20, 23))
q('condition', 'What elements were discovered in the United States after 1960?', num(found('United States'), 'discovery_year', 1960))
# superlative
q('superlative', 'which element has the highest meltng point', top(EL, 'melting_point'))
q('superlative', "What's the most abundant element in the Earth's crust?", top(EL, 'abundance_crust'))
q('superlative', 'Which element is the most electronegative?', top(EL, 'en_pauling'))
q('superlative', 'Of all the elements with a known discovery year, which one was discovered first?', low(EL, 'discovery_year'))
q('superlative', 'Who discoverd the most elements?', top(T('Person') | T('Institution'), lambda x: len(I(x, 'discoverers'))))
q('superlative', 'lanthanide with the highest boiling point', top(ser('lanthanides'), 'boiling_point'))
q('superlative', 'best heat conductor among the elements (thermal conductivity)', top(EL, 'thermal_conductivity'))
# count
v('count', 'How many elements are radioactive?', len(W(EL, lambda o: o['is_radioactive'])))
v('count', 'How many isotopes of tin are known?', len(I(E('Sn'), 'element')))
v('count', 'how many elements were discovered in france', len(found('France')))
v('count', 'For how many elements is China one of the top three producers?', len(prod('China')))
# yesno
v('yesno', 'Is technecium radioactive?', A(E('Tc'), 'is_radioactive'))
v('yesno', 'Is mercury a transition metal?', E('Hg') in ser('transition-metals'))
v('yesno', 'Was chlorine discovered by Davy?', E('Cl') in by('Sir Humphrey Davy'))
v('yesno', 'does carbon-14 undergo alpha decay?', 'mode:A' in O('isotope:C-14', 'decay_modes'))
# value
v('value', 'What is the atomic weight of gold?', A(E('Au'), 'atomic_weight'))
v('value', 'At how many kelvin does nitrogen boil?', A(E('N'), 'boiling_point'))
v('value', 'When was helium discovered?', A(E('He'), 'discovery_year'))
v('value', 'chemical symbol for tungsten', A(E('W'), 'symbol'))
v('value', 'How much does a kilo of rhodium cost?', A(E('Rh'), 'price_per_kg'))
v('value', 'What is the CAS number of caesium?', A(E('Cs'), 'cas'))
# comparison
q('comparison', 'Which is heavier in atomic weight, lead or gold?', top({E('Pb'), E('Au')}, 'atomic_weight'))
v('comparison', 'Is iridium denser than osmium?', A(E('Ir'), 'density') > A(E('Os'), 'density'))
q('comparison', 'Which was discovered earlier: neon or argon?', low({E('Ne'), E('Ar')}, 'discovery_year'))
# describe
q('describe', 'What can you tell me about iron?', E('Fe'))
# none
assert not O(E('Au'), 'discoverers') and A(E('Og'), 'melting_point') is None
k.none('Who discovered gold?')
k.none('What is the melting point of oganesson?')
k.none('How toxic is arsenic for rats?')
k.none('Where was Marie Curie born?')
k.none('Which company sells the most neodymium magnets?')
k.write('elements')
