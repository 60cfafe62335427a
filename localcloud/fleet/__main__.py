"""`python -m localcloud.fleet`: Auto Scaling and EC2 on the address that cloud.json gives them.

Reads the path of cloud.json from LOCALCLOUD_FILE; ends on SIGTERM.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def main() -> None:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    wired: dict[str, Any] = json.loads(Path(os.environ["LOCALCLOUD_FILE"]).read_text())
    # moto reads these at its first import; its 1,300 images are never looked at and take two seconds to make.
    os.environ |= {"MOTO_ACCOUNT_ID": wired["account"], "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}
    from localcloud.fleet.assembly import assemble
    from localcloud.fleet.server import serve

    fleet = assemble(wired)
    address = urlsplit(wired["fleet_endpoint"])
    server = serve(fleet, address.hostname or "127.0.0.1", address.port or 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=fleet.timers.run, name="timers", daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
