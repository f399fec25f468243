table = work . "/scan"
what = "Exclusive sum of floats"
ceiling = "copying alone"
load "tests/bench/plots/rates.gp"
