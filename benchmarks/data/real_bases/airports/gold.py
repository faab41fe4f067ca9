import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
q, v = k.nodes, k.value
AP = T('Airport')
a = lambda x: 'airport:' + x
C = lambda c: 'country:' + c
inc = lambda c: I(C(c), 'country') & AP
ins = lambda s: I('subd:' + s, 'subd') & AP
inz = lambda z: I('tz:' + z, 'tz')
# list
q('list', 'Which airports are there in Switzerland?', inc('CH'))
q('list', 'airports in vermont', ins('US-vermont'))
q('list', 'What time zone is Changi in?', O(a('SIN'), 'tz'))
q('list', "Which city's airport group is EZE part of?", O(a('EZE'), 'multi_airport_city'))
q('list', 'Where can you land in Sicily?', ins('IT-sicily'))
q('list', 'Which airports does the city code LON stand for?', I('mac:LON', 'multi_airport_city'))
q('list', 'What country is Lukla airport in?', O(a('LUA'), 'country'))
q('list', 'airports in Chicago', I('city:US-illinois-chicago', 'city'))
q('list', 'Which time zones do airports in Chile use?', O(inc('CL'), 'tz'))
q('list', 'In which state is Teterboro?', O(a('TEB'), 'subd'))
q('list', 'What other airports are in the same city as Gatwick?', I(O(a('LGW'), 'city'), 'city') - {a('LGW')})
q('list', 'Which countries have airports on Atlantic/Canary or Atlantic/Azores time?', O(inz('Atlantic/Canary') | inz('Atlantic/Azores'), 'country'))
q('list', 'I need a list of the welsh airports', ins('GB-wales'))
q('list', 'which aiports are on Corsica', ins('FR-corsica'))
q('list', 'Which IATA multi-airport cities are in Japan?', I(C('JP'), 'country') & T('Multi-airport city'))
q('list', 'Cities in Jamaica that have an airport', O(inc('JM'), 'city'))
# intersection
q('intersection', 'Mexican airports on Tijuana time', inc('MX') & inz('America/Tijuana'))
q('intersection', "Which Indiana airports are on Chicago time?", ins('US-indiana') & inz('America/Chicago'))
q('intersection', 'Portuguese airports that run on Azores time', inc('PT') & inz('Atlantic/Azores'))
q('intersection', 'Which airports in New South Wales keep Adelaide time?', ins('AU-new-south-wales') & inz('Australia/Adelaide'))
# negation
q('negation', 'Spanish airports in the Canary Islands other than the two on Tenerife', ins('ES-canary-islands') - I('mac:TCI', 'multi_airport_city'))
q('negation', 'Airports in Ecuador that are not on Guayaquil time', inc('EC') - inz('America/Guayaquil'))
q('negation', 'Which airports in Northern Ireland are not grouped under Belfast (BFS)?', ins('GB-northern-ireland') - I('mac:BFS', 'multi_airport_city'))
# condition
q('condition', 'airports higher than 14,000 feet', num(AP, 'elevation', 14000))
q('condition', 'Which airports in Bolivia lie above 12 thousand feet?', num(inc('BO'), 'elevation', 12000))
q('condition', 'Dutch airports that are below sea level', num(inc('NL'), 'elevation', None, 0))
q('condition', 'Nepalese airports at an elevation between 8000 and 10000 feet', num(inc('NP'), 'elevation', 8000, 10000))
q('condition', 'airports north of 75 degrees latitude', num(AP, 'lat', 75))
q('condition', 'What airports in Colorado are higher up than 9 thousand ft?', num(ins('US-colorado'), 'elevation', 9000))
q('condition', 'airports farther south than 54 degrees south', num(AP, 'lat', None, -54))
# superlative
q('superlative', 'What is the highest airport in the world?', top(AP, 'elevation'))
q('superlative', "Which airport is the lowest lying on earth?", low(AP, 'elevation'))
q('superlative', "What's the northernmost airport in the world?", top(AP, 'lat'))
q('superlative', 'hihgest swiss airport', top(inc('CH'), 'elevation'))
q('superlative', 'Which country has the most airports?', top(T('Country'), lambda x: len(I(x, 'country') & AP)))
q('superlative', 'southernmost airport in New Zealand', low(inc('NZ'), 'lat'))
# count
v('count', 'How many airports does Iceland have?', len(inc('IS')))
v('count', 'number of airports in papua new guinee', len(inc('PG')))
v('count', 'How many airports are in Hawaii?', len(ins('US-hawaii')))
v('count', 'in how many time zones does russia have airports?', len(O(inc('RU'), 'tz')))
# yesno
v('yesno', "Is EuroAirport Basel (BSL) in Switzerland?", C('CH') in O(a('BSL'), 'country'))
v('yesno', 'Are NRT and HND both in the Tokyo group?', {a('NRT'), a('HND')} <= I('mac:TYO', 'multi_airport_city'))
v('yesno', 'Is Schiphol below sea level?', A(a('AMS'), 'elevation') < 0)
v('yesno', 'Do Lisbon and Madeira airports share a time zone?', O(a('LIS'), 'tz') == O(a('FNC'), 'tz'))
# value
v('value', 'What is the IATA code of Keflavik?', A(a('KEF'), 'iata'))
v('value', 'How high above sea level is Denver International, in feet?', A(a('DEN'), 'elevation'))
v('value', 'ICAO code for Zurich airport', A(a('ZRH'), 'icao'))
v('value', 'What is the latitude of Tribhuvan airport?', A(a('KTM'), 'lat'))
v('value', "what's the elevaton of El Alto?", A(a('LPB'), 'elevation'))
# comparison
q('comparison', 'Which lies higher, Mexico City (MEX) or Quito (UIO)?', top({a('MEX'), a('UIO')}, 'elevation'))
q('comparison', 'Does Norway or Sweden have more airports?', top({C('NO'), C('SE')}, lambda x: len(I(x, 'country') & AP)))
v('comparison', 'Is Heathrow further north than Gatwick?', A(a('LHR'), 'lat') > A(a('LGW'), 'lat'))
# describe
q('describe', 'Tell me about Paro airport', a('PBH'))
# none
assert C('LI') not in k.n
k.none('Which airports are there in Liechtenstein?')
k.none('How many passengers does LAX handle a year?')
k.none('Which airlines fly from Zurich to Oslo?')
k.none('How long is the runway at Lukla?')
k.none('When was Denver International opened?')
k.none('is there a good restaurant at JFK terminal 4')
k.write('airports')
