"""Frames that wait to be written: fair between flows, bounded, written by shared tasks.

Begin at `fair_queue`.
"""
