# like: no_solution
# verdict: missing_entry_point
# cheat: none, `solution` cannot be called
solution = 42
