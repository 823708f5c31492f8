"""A graph whose own requests go through a script of faults; its tables lie in the same folder, unharmed."""

from __future__ import annotations

from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import Lanes
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.store.faults import Fault, FaultStore, Rule
from omnigraph.store.open import open_store
from support.clocks import SteppingClock

MANIFEST = "__manifest/"


class Faulty:
    """A graph whose own requests go through a script."""

    def __init__(self, root: str, *, owner: bool = True) -> None:
        self.store = FaultStore(open_store(root))
        self.clock = SteppingClock(now_us=2_000_000_000_000_000)
        self.core = open_core(root, store=self.store, clock=self.clock, owner=owner)
        self.core.lanes = Lanes()  # as on another host: what these tests let in meanwhile must not wait for us
        self.graph = Graph(Context(self.core))

    def publish_with(self, *faults: Fault, times: int = 1) -> None:
        for fault in faults:
            self.store.add(Rule(fault, verb="create", key=MANIFEST, times=times))
