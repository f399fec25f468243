# A panel with a row for each variant. table: label, value, 1 for what the library does, what stands beside the value.
# Bars begin at zero; dots have a logarithmic axis, on which the length of a bar would mean nothing.
unset logscale
set xrange [*:*]
set yrange [*:*]
stats table using 2 nooutput
if (most == 0) { low = STATS_min; high = STATS_max } else { low = least; high = most }
from = 0
to = high * (longest_note ? 1.55 : 1.14)
if (kind eq "dots") {
  from = 10 ** floor(log10(low) - 0.15)
  to = high * (longest_note ? 30 : 4)
  set logscale x
}
set tmargin at screen from_top
set bmargin at screen from_bottom
set lmargin at screen from_left
set rmargin at screen 0.97
set label 3 panel at screen 0.02, screen from_top + 16.0 / height left noenhanced font ",12" textcolor rgb text front
set xlabel axis . (kind eq "dots" ? " (logarithmic)" : "")
set xrange [from : to]
set yrange [STATS_records - 0.4 : -0.6]
set xtics auto
set grid noytics xtics
set ytics noenhanced font ",11"
if (kind eq "dots") {
  plot table using (from):0:($2 - from):(0) with vectors nohead linewidth 1 dashtype 3 linecolor rgb grey, \
       table using 2:0:($3 > 0 ? 0xd55e00 : 0x0072b2):ytic(1) with points pointtype 7 pointsize 1.5 \
         linecolor rgb variable, \
       table using 2:0:4 with labels left offset 1,0 noenhanced font ",11" textcolor rgb text
} else {
  plot table using (from):0:(from):2:($0 - 0.36):($0 + 0.36):($3 > 0 ? 0xd55e00 : 0x0072b2):ytic(1) \
         with boxxyerror fillstyle solid noborder linecolor rgb variable, \
       table using 2:0:4 with labels left offset 0.6,0 noenhanced font ",11" textcolor rgb text
}
unset label 1
unset label 2
unset label 4
