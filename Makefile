# Two commands: `make demo` answers real questions, `make test` proves the rest; `make campaign` tries for hours to break it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed

.PHONY: demo test locked campaign check format site release clean

demo: $(INSTALLED)
	$(BIN)/clew demo --folder .demo

# What requirements.lock names, which is all that is needed, file by file, or nothing.
locked:
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --only-binary :all: --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .

test: check
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

campaign: $(DEVELOPED)
	CLEW_LONG=1 nice $(BIN)/python -m pytest -m "long or hypothesis" --timeout 3600
	nice $(BIN)/python tests/campaign/run.py --out .campaign

check: $(DEVELOPED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEVELOPED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[demo]'
	touch $(INSTALLED)

$(DEVELOPED): pyproject.toml requirements.lock
	$(MAKE) locked || { echo "requirements.lock cannot be used here: installing what the index has, unchecked"; \
	  $(MAKE) $(INSTALLED) && \
	  $(BIN)/python -m pip install --quiet -e '.[web,documents,sparql,networkx,demo]' --group dev; }
	touch $(INSTALLED) $(DEVELOPED)

site: $(DEVELOPED)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group site
	$(BIN)/python scripts/site.py site

release:
	$(PYTHON) scripts/release.py

clean:
	rm -rf $(VENV) site site-source mkdocs.yml .demo .campaign .mypy_cache .ruff_cache .pytest_cache build dist
