"""What a live monitor of a bench costs while the bench is recorded."""
