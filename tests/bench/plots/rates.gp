# Rates over n: of gpukit, CUB and the ceiling, each with its name where the line ends. Wants table, what, ceiling.
stats table using 1 name "n" nooutput
stats table using 4 name "rate" nooutput
last(column) = real(system(sprintf("awk 'END { print $%d }' %s", column, table)))

set title what . " on one " . device . ", cold caches"
set logscale x 2
set xrange [n_min : n_max * 1.05]
set rmargin 16
set yrange [0 : rate_max * 1.08]
set xlabel "n, elements"
set ylabel "GB/s, higher is better"
set ytics 1000
set xtics ()
do for [k = 10 : 30 : 2] { if (2.0**k >= n_min && 2.0**k <= n_max) { set xtics add (sprintf("2^{%d}", k) 2.0**k) } }

# The labels in the order of the values, and apart from each other.
apart = rate_max * 0.05
at2 = last(2)
at3 = last(3)
at4 = last(4)
if (abs(at2 - at3) < apart) {
  middle = (at2 + at3) / 2
  side = at2 < at3 ? -1 : 1
  at2 = middle + side * apart / 2
  at3 = middle - side * apart / 2
}
top = at2 > at3 ? at2 : at3
if (at4 < top + apart) { at4 = top + apart }
set label 1 "gpukit" at graph 1.012, first at2 textcolor rgb ours front
set label 2 "CUB" at graph 1.012, first at3 textcolor rgb peer front
set label 3 ceiling at graph 1.012, first at4 textcolor rgb grey front

plot table using 1:4 with lines linewidth 2 dashtype 2 linecolor rgb grey, \
     table using 1:3 with linespoints linewidth 2.5 pointtype 5 pointsize 1.1 linecolor rgb peer, \
     table using 1:2 with linespoints linewidth 2.5 pointtype 7 pointsize 1.3 linecolor rgb ours
