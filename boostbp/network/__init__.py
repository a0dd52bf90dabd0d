"""Back-propagation: the network, its training by Algorithm 1, step rules, starts, history, callbacks."""
