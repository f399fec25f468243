# The sheet of a lesson's chart: heading and subheading above its panels; a remark, if there is one, below these.
set terminal pngcairo size width,height enhanced font "DejaVu Sans,12" background "#ffffff" linewidth 1.2
set multiplot
set label 1 heading at screen 0.5, screen 1 - 24.0 / height center noenhanced font ",16" textcolor rgb text front
set label 2 subheading at screen 0.5, screen 1 - 54.0 / height center noenhanced font ",12" textcolor rgb text front
set label 4 remark at screen 0.5, screen 1 - 78.0 / height center noenhanced font ",12" textcolor rgb peer front
