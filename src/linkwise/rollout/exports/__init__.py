"""What a rollout says, written for other programs and for people."""
