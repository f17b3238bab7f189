"""Order between program instances through release and acquire atomics, as conditions a race must satisfy, for any grid.

1. `setting` is what is asked about. 2. `locations` tells which accesses may change what an atomic finds. 3. `observing` lists
the atomics an execution has waited for, `publishing` what a release makes visible. 4. Each rule says what must hold for two
executions to be unordered: `origins` (whoever wrote the value came first), `arrivals` (a counter that counts everybody),
`exclusion` (a lock), `batons` (a number that says whose turn it is), `chains` (each program waits for the one before),
`phases` (a counter that all wait for, again and again). 5. `order` puts the rules together. `counted` says what is known of the
numbers that counters hand out.
"""
