"""Back-propagation: losses, steps, layers, the network and Algorithm 1."""
