# What the charts have in common. Colours of Okabe and Ito, which the colour-blind can tell apart.
set encoding utf8
set terminal pngcairo size 1200,720 enhanced font "DejaVu Sans,15" background "#ffffff" linewidth 1.2
set output out

ours = "#0072b2"
peer = "#d55e00"
grey = "#8a8a8a"
faint = "#e4e4e4"
text = "#333333"

set border 3 linecolor rgb grey linewidth 0.8
set grid xtics ytics linetype 1 linewidth 0.6 linecolor rgb faint
set tics nomirror out textcolor rgb text
set title font ",19" textcolor rgb text offset 0,0.4
set xlabel textcolor rgb text
set ylabel textcolor rgb text
unset key
