table = work . "/reduce"
what = "Sum of floats"
ceiling = "reading alone"
load "tests/bench/plots/rates.gp"
