import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
q, v = k.nodes, k.value
F = lambda n: N(n, 'Film')
FI = T('Film')
by = lambda n: I(N(n, 'Director'), 'Director')
dist = lambda n: I(N(n, 'Distributor'), 'Distributor')
gen = lambda n: I(N(n, 'Genre'), 'Major Genre')
ct = lambda n: I(N(n, 'Creative Type'), 'Creative Type')
src = lambda n: I(N(n, 'Source'), 'Source')
mpaa = lambda n: I(N(n, 'MPAA Rating'), 'MPAA Rating')
D = 'Release Date'
# list
q('list', 'What movies did Christopher Nolan direct?', by('Christopher Nolan'))
q('list', 'who directed pulp fiction', O(F('Pulp Fiction'), 'Director'))
q('list', 'Which studio distributed Titanic?', O(F('Titanic'), 'Distributor'))
q('list', 'films by hitchcock', by('Alfred Hitchcock'))
q('list', 'What genre is Fargo?', O(F('Fargo'), 'Major Genre'))
q('list', 'Which movies were based on a Disney ride?', src('Disney Ride'))
q('list', 'concert movies', gen('Concert/Performance'))
q('list', 'Show me all the movies rated NC-17', mpaa('NC-17'))
q('list', 'Which companies have distributed Woody Allen films?', O(by('Woody Allen'), 'Distributor'))
q('list', 'In what genres has Stanley Kubrick worked?', O(by('Stanley Kubrick'), 'Major Genre'))
q('list', 'everything quentin tarentino directed', by('Quentin Tarantino'))
q('list', 'Who are the directors of the westerns put out by Warner Bros.?', O(gen('Western') & dist('Warner Bros.'), 'Director'))
q('list', 'What other films were made by the director of Fight Club?', by('David Fincher') - {F('Fight Club')})
assert O(F('Fight Club'), 'Director') == {N('David Fincher')}
# intersection
q('intersection', "Spielberg's science fiction movies", by('Steven Spielberg') & ct('Science Fiction'))
q('intersection', 'Which westerns did Clint Eastwood direct?', gen('Western') & by('Clint Eastwood'))
q('intersection', 'super hero movies distributed by 20th Century Fox', ct('Super Hero') & dist('20th Century Fox'))
q('intersection', 'Are there any G rated musicals from Disney? which ones', mpaa('G') & gen('Musical') & dist('Walt Disney Pictures'))
# negation
q('negation', 'Which Christopher Nolan films are not rated PG-13?', by('Christopher Nolan') - mpaa('PG-13'))
assert all(O(x, 'MPAA Rating') for x in by('Christopher Nolan')) and all(O(x, 'Distributor') for x in by('M. Night Shyamalan'))
assert all(O(x, 'Source') for x in ct('Super Hero'))
q('negation', 'super hero films that arent based on a comic', ct('Super Hero') - src('Based on Comic/Graphic Novel'))
q('negation', "M. Night Shyamalan's films that were not released by Disney", by('M. Night Shyamalan') - dist('Walt Disney Pictures'))
# condition
q('condition', 'Which movies run longer than three hours?', num(FI, 'Running Time min', 180))
q('condition', 'movies released before 1930', W(FI, lambda o: D in o and o[D] < '1930'))
q('condition', 'Which horror movies have an IMDB rating of at least 8?', num(gen('Horror'), 'IMDB Rating', 8, None, False))
q('condition', 'tim burton movies that made more than 200 million worldwide', num(by('Tim Burton'), 'Worldwide Gross', 200e6))
q('condition', 'romantic comedies with a rotten tomatoes score under 10', num(gen('Romantic Comedy'), 'Rotten Tomatoes Rating', None, 10))
# superlative
q('superlative', 'Which director has made the most films?', top(T('Director'), lambda x: len(I(x, 'Director'))))
q('superlative', 'longest documentry', top(gen('Documentary'), 'Running Time min'))
q('superlative', "What's Spike Lee's best rated film on IMDB?", top(by('Spike Lee'), 'IMDB Rating'))
q('superlative', 'Which film based on a game cost the most to make?', top(src('Based on Game'), 'Production Budget'))
# count
v('count', 'How many movies did Martin Scorsese direct?', len(by('Martin Scorsese')))
v('count', 'how many black comedies are there', len(gen('Black Comedy')))
v('count', 'number of movies that came out in 1999', len(W(FI, lambda o: o.get(D, '')[:4] == '1999')))
# yesno
v('yesno', 'Is Shrek rated PG?', O(F('Shrek'), 'MPAA Rating') == {N('PG')})
v('yesno', 'Did James Cameron direct Minority Report?', N('James Cameron') in O(F('Minority Report'), 'Director'))
v('yesno', 'was Sin City based on a comic?', F('Sin City') in src('Based on Comic/Graphic Novel'))
# value
v('value', 'What was the budget for Waterworld?', A(F('Waterworld'), 'Production Budget'))
v('value', 'how long is The Dark Knight in minutes', A(F('The Dark Knight'), 'Running Time min'))
v('value', 'When did Jurassic Park come out?', A(F('Jurassic Park'), D))
v('value', 'How much did 300 make in US DVD sales?', A(F('300'), 'US DVD Sales'))
# comparison
q('comparison', 'Which made more money worldwide, Spider-Man or Iron Man?', top({F('Spider-Man'), F('Iron Man')}, 'Worldwide Gross'))
v('comparison', 'Does Ratatouille have a higher Rotten Tomatoes score than Cars?', A(F('Ratatouille'), 'Rotten Tomatoes Rating') > A(F('Cars'), 'Rotten Tomatoes Rating'))
# describe
q('describe', 'Tell me about Finding Nemo', F('Finding Nemo'))
# none
assert not O(F('Little Miss Sunshine'), 'Director')
k.none('Who played the Joker in The Dark Knight?')
k.none('Which films won the Oscar for best picture?')
k.none('who directed little miss sunshine')
k.write('films')
