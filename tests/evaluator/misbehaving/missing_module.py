# verdict: import_error
# cheat: none, imports a package that does not exist
import a_package_that_does_not_exist_here


def solution(tensor):
    return a_package_that_does_not_exist_here.all_reduce(tensor)
