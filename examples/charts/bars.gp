# A bar for each variant. table: label, value and 1 for what the library does; height: in pixels.
set terminal pngcairo size 1000,height enhanced font "DejaVu Sans,13" background "#ffffff" linewidth 1.2
set datafile separator "\t"
stats table using 2 nooutput
set title heading font ",17" offset 0,0.2
set xlabel axis
set xrange [0 : STATS_max * 1.14]
set yrange [STATS_records - 0.4 : -0.6]
set border 3
set grid noytics
set ytics noenhanced font ",12"
set boxwidth 0.7
plot table using (0):0:(0):2:($0 - 0.36):($0 + 0.36):($3 > 0 ? 0xd55e00 : 0x0072b2):ytic(1) \
       with boxxyerror fillstyle solid noborder linecolor rgb variable, \
     table using 2:0:(sprintf("%.4g", $2)) with labels left offset 0.6,0 font ",11" textcolor rgb text
