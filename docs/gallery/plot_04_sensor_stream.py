"""
Watch a sensor stream
=====================

A machine hums at a speed that changes. Windows of its signal lie on a curve. The curve is learnt from the first
