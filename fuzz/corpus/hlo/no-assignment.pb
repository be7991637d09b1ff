
.
mmain#
c
dot.1dot˜
addadd˜