"""Random models as ONNX graphs and C programs, beside what predict gives."""
