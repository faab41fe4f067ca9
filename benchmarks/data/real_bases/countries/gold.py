import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
C = lambda c: 'country:' + c
CO, CI = T('Country'), T('City')
L = lambda n: N(n, 'Language')
cont = lambda c: I('continent:' + c, 'continent')
nb = lambda c: O(C(c), 'neighbours')
city = lambda name, c: top(W(I(C(c), 'country') & CI, lambda o: o['name'] == name), 'population')
one = lambda s: next(iter(s)) if len(s) == 1 else 1 / 0
cities = lambda c: I(C(c), 'country') & CI
q, v = k.nodes, k.value
# list
q('list', 'Which countries border Switzerland?', nb('CH'))
q('list', 'what languages do people speak in south africa', O(C('ZA'), 'languages'))
q('list', 'Where can I pay with Swiss francs?', I('currency:CHF', 'currency'))
q('list', 'In which countries is Portuguese spoken?', I(L('Portuguese'), 'languages'))
q('list', "What's the capital of Kazakhstan?", O(C('KZ'), 'capital'))
q('list', 'Ouagadougou is the capital of which country?', I(city('Ouagadougou', 'BF'), 'capital'))
q('list', 'money used in Bhutan', O(C('BT'), 'currency'))
q('list', 'List the cantons of Switzerland', W(I(C('CH'), 'country') & T('Subdivision'), lambda o: o['subdivision_type'] == 'Canton'))
q('list', 'I need the capitals of all the countries next to Austria', O(nb('AT'), 'capital'))
q('list', 'Which languages are spoken in the countries around Peru?', O(nb('PE'), 'languages'))
q('list', 'Which currencies would I come across when travelling all over South America?', O(cont('SA'), 'currency'))
q('list', 'cities in New Mexico', I('subdivision:US-NM', 'admin1'))
q('list', 'What time zone is Kathmandu in?', O(city('Kathmandu', 'NP'), 'timezone'))
q('list', 'wich countries speak dutch?', I(L('Dutch'), 'languages'))
q('list', 'What continent is Kyrgyzstan on?', O(C('KG'), 'continent'))
q('list', 'Show me every country in South America.', cont('SA'))
# intersection
q('intersection', 'Which African countries have Spanish speakers?', cont('AF') & I(L('Spanish'), 'languages'))
q('intersection', 'Which countries touch both France and Germany?', nb('FR') & nb('DE'))
q('intersection', "Italy's neighbours that pay in euros", nb('IT') & I('currency:EUR', 'currency'))
q('intersection', 'countries where both Dutch and German are spoken', I(L('Dutch'), 'languages') & I(L('German'), 'languages'))
q('intersection', 'Which Spanish speaking countries have the US dollar as their currency?', I(L('Spanish'), 'languages') & I('currency:USD', 'currency'))
# negation
q('negation', "Which of Germany's neighbours don't use the euro?", nb('DE') - I('currency:EUR', 'currency'))
q('negation', 'South American countries where they dont speak Spansh', cont('SA') - I(L('Spanish'), 'languages'))
q('negation', 'Which countries in Africa speak neither English nor French nor Arabic?', cont('AF') - I({L('English'), L('French'), L('Arabic')}, 'languages'))
# condition
q('condition', 'contries with more than 200 million people', num(CO, 'population', 200e6))
q('condition', 'Which European countries have fewer than 100 thousand inhabitants?', num(cont('EU'), 'population', None, 100e3))
q('condition', 'South American countries larger than a million square kilometres', num(cont('SA'), 'areakm2', 1e6))
q('condition', 'German cities with over half a million inhabitants', num(cities('DE'), 'population', 500e3))
q('condition', 'Which African countries have between 10 and 15 million people?', num(cont('AF'), 'population', 10e6, 15e6))
q('condition', 'cities north of the 69th parallel', num(CI, 'latitude', 69))
q('condition', 'US cities with at least 1 million residents', num(cities('US'), 'population', 1e6, None, False))
# superlative
q('superlative', 'Which city in Brazil has the most people?', top(cities('BR'), 'population'))
q('superlative', 'whats the most populus country in africa', top(cont('AF'), 'population'))
q('superlative', "Which neighbour of Switzerland covers the biggest area?", top(nb('CH'), 'areakm2'))
q('superlative', 'northernmost city in Norway', top(cities('NO'), 'latitude'))
q('superlative', 'Which European capital has the most inhabitants?', top(O(cont('EU'), 'capital'), 'population'))
q('superlative', 'Which country has the most land neighbours?', top(CO, lambda x: len(O(x, 'neighbours'))))
# count
v('count', 'How many countries share a border with China?', len(nb('CN')))
v('count', 'How many countries use the euro?', len(I('currency:EUR', 'currency')))
v('count', 'number of states in India', len(W(I(C('IN'), 'country') & T('Subdivision'), lambda o: o['subdivision_type'] == 'State')))
v('count', 'How many countries are there in South America?', len(cont('SA')))
v('count', 'how many countries have Arabic as one of their languages', len(I(L('Arabic'), 'languages')))
# yesno
v('yesno', 'Does Portugal border France?', C('PT') in nb('FR'))
v('yesno', 'Is English spoken in Rwanda?', L('English') in O(C('RW'), 'languages'))
v('yesno', 'Is Sydney the capital of Australia?', bool(city('Sydney', 'AU') & O(C('AU'), 'capital')))
v('yesno', 'Do Ecuador and El Salvador use the same currency?', O(C('EC'), 'currency') == O(C('SV'), 'currency'))
# value
v('value', 'What is the popultion of Vietnam?', A(C('VN'), 'population'))
v('value', 'dialling code for Iceland', A(C('IS'), 'phone'))
v('value', "What's the internet domain ending of Tuvalu?", A(C('TV'), 'tld'))
v('value', 'How many square kilometres is Mongolia?', A(C('MN'), 'areakm2'))
v('value', 'latitude of Quito', A(one(city('Quito', 'EC')), 'latitude'))
v('value', 'three letter ISO code for Switzerland', A(C('CH'), 'iso3'))
# comparison
q('comparison', 'Which covers more area, Algeria or Argentina?', top({C('DZ'), C('AR')}, 'areakm2'))
v('comparison', 'Does Lagos have more people than Cairo?', A(one(city('Lagos', 'NG')), 'population') > A(one(city('Cairo', 'EG')), 'population'))
q('comparison', 'who has the larger population: Canada or Ukraine?', top({C('CA'), C('UA')}, 'population'))
# describe
q('describe', 'Tell me about Bhutan', C('BT'))
# none
k.none('Who is the president of Chile?')
k.none('What is the GDP of Germany?')
k.none('When was Lisbon founded?')
k.none("What's the capital of Antarctica?")
k.none('which airlines fly from Lima to Quito')
k.none('What religion do most people in Nepal follow?')
assert not O(C('AQ'), 'capital')
k.write('countries')
