"""A cluster on a simulated network, clock and database, so that two cores can see what a hundred nodes would do.

Real are the scheduler (TurnQueue, may_begin), the claim of a conversation (claiming.claim) and the fence (check_owner).
What the product does in SQL is modelled in model.py and conversations.py; tests/cluster/test_model.py does the same
random things to the model and to PostgreSQL, so that they cannot drift apart. The same seed does the same again.
"""
