"""Results for people and programs: tables on a terminal, and the published results `linkwise.<verb>/1`.

It computes nothing: it takes the values of the rooms below and writes them down, three significant digits to
people, every digit to programs.
Read first: `results` (what a program reads), then `plan_table`.
"""
