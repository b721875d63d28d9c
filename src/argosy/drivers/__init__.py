"""Drivers of GPUs: their libraries, and the devices that they report."""
