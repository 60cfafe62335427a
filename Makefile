.venv/bin/python: requirements.lock
	python3 -m venv .venv && .venv/bin/pip -q install uv==0.13.9 && .venv/bin/uv pip sync -q --python .venv/bin/python requirements.lock
