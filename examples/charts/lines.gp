# A panel over a number. table: x, value, and the rules that choose this x, if any. Points have a logarithmic axis and
# no line: nothing was measured between them.
set tmargin at screen from_top
set bmargin at screen from_bottom
set lmargin at screen from_left
set rmargin at screen 0.97
set label 3 panel at screen 0.02, screen from_top + 16.0 / height left noenhanced font ",12" textcolor rgb text front
unset logscale
set xrange [*:*]
set yrange [*:*]
stats table using 1:2 nooutput
if (most == 0) { low = STATS_min_y; high = STATS_max_y } else { low = least; high = most }
set ylabel axis . (kind eq "points" ? " (log)" : "") offset -1,0 font ",11"
set xlabel x_name
set xrange [0 : STATS_max_x * (kind eq "line" ? 1.17 : 1.03)]
set xtics ()
do for [tick in x_ticks] { set xtics add (tick tick + 0) }
set grid xtics ytics
set ytics auto
if (kind eq "points") {
  set logscale y 2
  set yrange [low / 1.6 : high * 1.6]
  plot table using 1:2 with points pointtype 7 pointsize 1.2 linecolor rgb ours
} else {
  set yrange [0 : high * 1.25]
  chosen = "< grep -v '\"\"$' '" . table . "'"
  plot table using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.9 linecolor rgb ours, \
       chosen using 1:2 with points pointtype 6 pointsize 2.2 linewidth 1.8 linecolor rgb peer, \
       chosen using 1:2:3 with labels left offset 1,-1.6 noenhanced font ",11" textcolor rgb peer
}
unset label 1
unset label 2
unset label 4
