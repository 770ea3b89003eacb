"""What analysts ask of the balance demo, with the answers and plots of docs/analysts.md."""
