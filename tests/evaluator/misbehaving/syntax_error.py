# verdict: build_error
# cheat: none, Python cannot compile the file
return 42
