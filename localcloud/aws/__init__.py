"""The AWS of the local cloud: ministack, extended where it falls short of AWS for this product.

`python -m localcloud.aws` starts it (see `__main__`). Each module here adds one thing that upstream lacks and says
where AWS documents it; README.md lists what stays different.
"""
