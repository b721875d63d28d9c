"""The compilers behind code generation: started as processes of their own, under limits, with a cache on disk."""
