"""What README's figures come from: each module measures one thing, checks it for exactness, and says on what."""
