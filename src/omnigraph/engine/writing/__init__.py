"""One write from its base to its receipt: plan, stage, group, publish, take over, replay."""
