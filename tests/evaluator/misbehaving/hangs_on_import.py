# like: hangs_on_one_rank
# verdict: timeout
# limits: build_s=4
# cheat: never finishes importing
while True:
    pass
