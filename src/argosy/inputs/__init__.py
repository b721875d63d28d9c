"""Inputs to feed a model with: from files where they are given, generated from a seed where they are not."""

from argosy.inputs.generated import generate
from argosy.inputs.request import InputRequest, Inputs, make_inputs
from argosy.inputs.writing import write_npz

__all__ = ["InputRequest", "Inputs", "generate", "make_inputs", "write_npz"]
