"""`./run demo ROBOT`: each arm of the papers on emulated boards, from motors to verdict, beside its paper."""
