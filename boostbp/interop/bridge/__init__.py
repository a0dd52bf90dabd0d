"""Tree layers in torch models, behind `boostbp.interop.torch_bridge`."""
