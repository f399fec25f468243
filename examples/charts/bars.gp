# A bar for each variant. table: label, value and 1 for what the library does; height: in pixels; logarithmic: 1 or 0.
set terminal pngcairo size 1000,height enhanced font "DejaVu Sans,13" background "#ffffff" linewidth 1.2
set datafile separator "\t"
stats table using 2 nooutput
from = 0
if (logarithmic) {
  from = 10 ** floor(log10(STATS_min) - 0.1)
  set logscale x
}
set title heading font ",17" offset 0,0.2
set xlabel axis
set xrange [from : logarithmic ? STATS_max * 3 : STATS_max * 1.14]
set yrange [STATS_records - 0.4 : -0.6]
set grid noytics
set ytics noenhanced font ",12"
shown(value) = sprintf(value < 1000 ? "%.4g" : "%.0f", value)
plot table using (from):0:(from):2:($0 - 0.36):($0 + 0.36):($3 > 0 ? 0xd55e00 : 0x0072b2):ytic(1) \
       with boxxyerror fillstyle solid noborder linecolor rgb variable, \
     table using 2:0:(shown($2)) with labels left offset 0.6,0 font ",11" textcolor rgb text
