"""Artifacts as Python wheels, one for each arch, and static package indexes that hand each machine its own.

`names` and `wheel` follow the Python packaging authority; `parts` says what lies in which wheel, `package` writes them;
`index` describes a folder of wheels, `pages` are its pages, `check` installs from them, `publish` lays them out to be
uploaded. Nothing here needs a network.
"""
