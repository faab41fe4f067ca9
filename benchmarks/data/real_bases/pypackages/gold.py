import os, sys
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.dirname(HERE))
from goldlib import KB
k = KB(HERE); O, I, A, T, W, N, num, top, low, of = k.O, k.I, k.A, k.T, k.W, k.N, k.num, k.top, k.low, k.of
q, v = k.nodes, k.value
P = T('Package')
p = lambda x: 'package:' + x
au = lambda n: N(n, 'Author')
lic = lambda l: I('license:' + l, 'license')
deps = lambda x: O(p(x), 'requires')
users = lambda x: I(p(x), 'requires')
GPL = {x for x in T('License') if A(x, 'name').startswith('GPL')}
LGPL = {x for x in T('License') if A(x, 'name').startswith('LGPL')}
# list
q('list', 'What does Flask depend on?', deps('flask'))
q('list', 'which packages need pytest', users('pytest'))
q('list', 'Who wrote FastAPI?', O(p('fastapi'), 'author'))
q('list', 'packages by Tom Christie', I(au('Tom Christie'), 'author'))
q('list', 'Under which licence is pylint released?', O(p('pylint'), 'license'))
q('list', 'What command line tools come with Twisted?', O(p('twisted'), 'console_script'))
q('list', 'Which package do I have to install to get the stubgen command?', I(N('stubgen', 'Command'), 'console_script'))
q('list', 'What do the dependencies of pandas depend on themselves?', O(deps('pandas'), 'requires'))
q('list', 'Who maintans werkzeug?', O(p('werkzeug'), 'maintainer'))
q('list', 'licences of the things boto3 requires', O(deps('boto3'), 'license'))
q('list', 'Which packages are under a Mozilla licence?', lic('mpl-2.0'))
q('list', 'everything the Pallets people look after', I(au('Pallets'), 'maintainer'))
q('list', 'Which libraries deal with cryptography?', I('topic:security/cryptography', 'topic'))
q('list', 'packages writen partly in rust', I('lang:rust', 'programming_language'))
q('list', 'Who are the authors of the packages seaborn depends on?', O(deps('seaborn'), 'author'))
q('list', 'Which package gives me a fast progress meter?', W(P, lambda o: 'progress meter' in o.get('summary', '').lower()))
q('list', 'What can I use to read and write xlsx files from Excel 2010?', W(P, lambda o: 'excel 2010' in o.get('summary', '').lower() and 'read' in o['summary'].lower()))
q('list', 'Which packages are aimed at the healthcare industry?', I('audience:healthcare-industry', 'intended_audience'))
# intersection
q('intersection', 'Which packages require both requests and Jinja2?', users('requests') & users('jinja2'))
q('intersection', 'MIT licensed packages that depend on requests', lic('mit') & users('requests'))
q('intersection', 'dependancies that Flask and Celery have in common', deps('flask') & deps('celery'))
q('intersection', 'Which Apache licensed packages run on the asyncio framework?', lic('apache-2.0') & I('framework:asyncio', 'framework'))
# negation
q('negation', "what needs pytest but isn't MIT licensed?", users('pytest') - lic('mit'))
q('negation', 'Of the packages that need Flask, which ones can do without requests?', users('flask') - users('requests'))
q('negation', 'packages that require click but not packaging or typing_extensions', users('click') - users('packaging') - users('typing-extensions'))
# condition
q('condition', 'Which packages take up more than 50 MB on disk?', num(P, 'installed_size', 50e6))
q('condition', 'packages marked as inactive', W(P, lambda o: (o.get('development_status') or '').startswith('7')))
q('condition', 'Which packages are considered mature (development status 6)?', W(P, lambda o: (o.get('development_status') or '').startswith('6')))
q('condition', 'packages with between 2000 and 4000 installed files', num(P, 'installed_files', 2000, 4000))
q('condition', 'What requires numpy and weighs more than 40 million bytes?', num(users('numpy'), 'installed_size', 40e6))
q('condition', 'dependencies of Scrapy that are not pure python', W(deps('scrapy'), lambda o: not o['root_is_purelib']))
q('condition', 'Which of the packages by the Jupyter Development Team ship type information?', W(I(au('Jupyter Development Team'), 'author'), lambda o: o['typed']))
# superlative
q('superlative', 'What is the biggest package on disk?', top(P, 'installed_size'))
q('superlative', 'Which package do most others depend on?', top(P, lambda x: len(I(x, 'requires'))))
q('superlative', 'Who has authored the most packages?', top(T('Author'), lambda x: len(I(x, 'author'))))
q('superlative', 'Which package has the most files?', top(P, 'installed_files'))
q('superlative', 'Which dependency of streamlit is the smallest in size?', low(deps('streamlit'), 'installed_size'))
q('superlative', 'Which package offers the most commands?', top(P, lambda x: len(O(x, 'console_script'))))
# count
v('count', 'how many packges depend on click?', len(users('click')))
v('count', 'how many packages are MIT licensed', len(lic('mit')))
v('count', 'How many direct dependencies does Scrapy have?', len(deps('scrapy')))
v('count', 'How many packages are still in alpha?', len(W(P, lambda o: (o.get('development_status') or '').startswith('3'))))
# yesno
v('yesno', 'Does httpx need certifi?', p('certifi') in deps('httpx'))
v('yesno', 'Is Django typed?', A(p('django'), 'typed'))
v('yesno', 'Is numpy pure Python?', A(p('numpy'), 'root_is_purelib'))
v('yesno', 'Did Kenneth Reitz write requests?', au('Kenneth Reitz') in O(p('requests'), 'author'))
# value
v('value', 'What version of SQLAlchemy is this?', A(p('sqlalchemy'), 'version'))
v('value', 'Which python does pandas require at least?', A(p('pandas'), 'requires_python'))
v('value', 'homepage of celery', A(p('celery'), 'home_page'))
v('value', 'How many files does the ruff package install?', A(p('ruff'), 'installed_files'))
v('value', 'development status of fastapi', A(p('fastapi'), 'development_status'))
# comparison
q('comparison', 'Which is larger on disk, matplotlib or plotly?', top({p('matplotlib'), p('plotly')}, 'installed_size'))
v('comparison', 'Does Django have more installed files than sympy?', A(p('django'), 'installed_files') > A(p('sympy'), 'installed_files'))
q('comparison', 'Which has fewer dependencies: Flask or FastAPI?', low({p('flask'), p('fastapi')}, lambda x: len(O(x, 'requires'))))
# describe
q('describe', 'What is beautifulsoup4?', p('beautifulsoup4'))
# none
assert not deps('numpy') and 'package:tensorflow' not in k.n
k.none('How many downloads does Scrapy get per month?')
k.none('Which packages depend on tensorflow?')
k.none('When was the first release of Django?')
k.none('What known vulnerabilities does pillow have?')
k.none('which packages does numpy require')
k.none('How many GitHub stars does black have?')
k.write('pypackages')
