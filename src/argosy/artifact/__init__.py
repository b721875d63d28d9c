"""The artifact: one file that holds a program, its weights once, and code for many machines. Pure data.

`zipformat`, `container`, `container_writer` and `atomic` are the file; `manifest`, `program` and `plan` are
what it says; `artifact_file` opens one and checks what it hands out, `joined` opens several as one; `merge` makes one
of several, `subset` and `part` several of one.
"""
